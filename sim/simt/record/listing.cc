// SPDX-License-Identifier: Apache-2.0
#include "simt/record/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace warpcache::simt {
namespace {

// Functions that a call does not come back from.
constexpr const char* kNoReturn[] = {"abort", "__assert_fail", "fail_assertion", "terminate"};

enum class Flow { kOn, kJump, kBranch, kEnd };

struct Line {
  uint64_t address;
  Flow flow = Flow::kOn;
  uint64_t target = 0;
};

// "  4012a0:\tjne    401300 <name+0x10>"
bool parse_line(const std::string& text, Line* out, bool* indirect) {
  const size_t colon = text.find(":\t");
  const size_t from = text.find_first_not_of(' ');
  if (colon == std::string::npos || from == std::string::npos) return false;
  const auto parsed = std::from_chars(text.data() + from, text.data() + colon, out->address, 16);
  if (parsed.ptr != text.data() + colon) return false;
  std::string code = text.substr(colon + 2);
  for (const char* prefix : {"bnd ", "notrack "}) {
    if (code.starts_with(prefix)) code = code.substr(std::char_traits<char>::length(prefix));
  }
  const std::string name = code.substr(0, code.find(' '));
  const size_t operand = std::min(code.find_first_not_of(' ', name.size()), code.size());
  if (name == "ret" || name == "ud2" || name == "hlt") {
    out->flow = Flow::kEnd;
  } else if (name == "call") {
    const bool ends = std::any_of(std::begin(kNoReturn), std::end(kNoReturn), [&](const char* one) {
      return code.find(one, operand) != std::string::npos;
    });
    if (ends) out->flow = Flow::kEnd;
  } else if (name[0] == 'j') {
    out->flow = name == "jmp" ? Flow::kJump : Flow::kBranch;
    const auto to =
        std::from_chars(code.data() + operand, code.data() + code.size(), out->target, 16);
    *indirect = to.ptr == code.data() + operand;
  }
  return true;
}

bool read_lines(std::istream& in, const std::string& function, std::vector<Line>* lines,
                std::string* why) {
  std::string text;
  bool inside = false;
  while (std::getline(in, text)) {
    if (text.find('<' + function + ">:") != std::string::npos) {
      inside = true;
    } else if (inside && text.empty()) {
      break;
    } else if (inside) {
      Line line;
      bool indirect = false;
      if (!parse_line(text, &line, &indirect)) continue;
      if (indirect) {
        *why = "a jump through a register: " + text;
        return false;
      }
      lines->push_back(line);
    }
  }
  if (lines->empty()) *why = "the listing has no function " + function;
  return !lines->empty();
}

// Where blocks begin: the function, jump targets, and after whatever does not just go on.
std::set<uint64_t> leaders(const std::vector<Line>& lines) {
  std::set<uint64_t> found = {lines[0].address};
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].flow == Flow::kOn) continue;
    if (lines[i].target != 0) found.insert(lines[i].target);
    if (i + 1 < lines.size()) found.insert(lines[i + 1].address);
  }
  return found;
}

// Names the blocks and notes where each begins.
void begin_blocks(const std::vector<Line>& lines, Listing* out) {
  const uint64_t begin = lines[0].address;
  out->size = static_cast<uint32_t>(lines.back().address - begin) + 1;
  out->block_at.assign(out->size, kNone);
  for (const uint64_t leader : leaders(lines)) {
    if (leader < begin || leader >= begin + out->size) continue;  // a jump out of the function
    out->block_at[leader - begin] = static_cast<uint32_t>(out->graph.blocks.size());
    Block block;
    block.name = fmt::format("b{:x}", leader - begin);
    out->graph.blocks.push_back(block);
  }
}

// Where a jump leads, or what begins at an address: kExit outside, kNone inside of a block.
uint32_t place(const Listing& listing, uint64_t begin, uint64_t address) {
  const bool outside = address < begin || address >= begin + listing.size;
  return outside ? kExit : listing.block_at[address - begin];
}

// `line` is the last of `block`, `next` what stands after it.
void end_block(const Line& line, uint32_t next, uint32_t target, Block* block) {
  const bool falls = line.flow == Flow::kOn || line.flow == Flow::kBranch;
  const bool jumps = line.flow == Flow::kJump || line.flow == Flow::kBranch;
  if (falls) block->successors.push_back(next);
  if (jumps && (!falls || target != next)) block->successors.push_back(target);
  if (line.flow == Flow::kEnd) block->successors.push_back(kExit);
}

}  // namespace

bool read_listing(std::istream& in, const std::string& function, Listing* out, std::string* why) {
  *out = {};
  std::vector<Line> lines;
  if (!read_lines(in, function, &lines, why)) return false;
  const uint64_t begin = lines[0].address;
  begin_blocks(lines, out);
  Block* block = nullptr;
  for (size_t i = 0; i < lines.size(); ++i) {
    const uint32_t here = place(*out, begin, lines[i].address);
    if (here != kNone) block = &out->graph.blocks[here];
    ++block->instructions;
    block->address = lines[i].address - begin;
    const uint32_t next = i + 1 < lines.size() ? place(*out, begin, lines[i + 1].address) : kExit;
    if (next != kNone) end_block(lines[i], next, place(*out, begin, lines[i].target), block);
  }
  out->graph.functions.push_back({function, 0});
  return true;
}

bool blocks_of(const Listing& listing, const std::vector<uint32_t>& steps,
               std::vector<uint32_t>* blocks) {
  blocks->clear();
  uint32_t before = UINT32_MAX;
  for (const uint32_t at : steps) {
    const bool repeats = at == before;
    before = at;
    if (at >= listing.size) return false;
    if (listing.block_at[at] != kNone && !repeats) blocks->push_back(listing.block_at[at]);
  }
  return !blocks->empty() && (*blocks)[0] == listing.graph.functions[0].entry;
}

}  // namespace warpcache::simt
