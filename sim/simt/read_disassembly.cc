// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "simt/read_graph.h"

namespace warpcache::simt {
namespace {

struct Instruction {
  uint64_t address = 0;
  std::string guard;  // "@P0", "@!UP1" or empty
  std::string opcode;
  std::string operands;

  bool is(std::string_view name) const {
    return opcode == name || (opcode.starts_with(name) && opcode[name.size()] == '.');
  }
};

struct Field {
  std::string port;
  std::vector<Instruction> instructions;
};

// Where the edges of one port lead: :e sides are branches, :s sides go on to what follows.
struct Exits {
  std::vector<std::string> taken;
  std::string next;
};

// A block in the making. `next` is its fall-through: a block's name, or empty.
struct Piece {
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<std::string> taken;
  std::string next;
};

std::string_view trim(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

std::string_view take_word(std::string_view* text) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  *text = trim(text->substr(end));
  return word;
}

// False: the line is a label or a directive.
bool parse_instruction(std::string_view line, Instruction* out) {
  line = trim(line);
  if (!line.ends_with(';')) return false;
  line = trim(line.substr(0, line.size() - 1));
  *out = {};
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && colon < line.find_first_of(" `(")) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + colon, out->address, 16);
    if (error == std::errc() && end == line.data() + colon) line = trim(line.substr(colon + 1));
  }
  if (line.starts_with('@')) out->guard = take_word(&line);
  out->opcode = take_word(&line);
  out->operands = line;
  return !out->opcode.empty();
}

// A record's label: fields apart at '|', each with its <port>, lines apart at "\l".
std::vector<Field> parse_record(const std::string& label) {
  std::vector<Field> fields(1);
  std::string line;
  const auto end_line = [&] {
    Instruction found;
    if (parse_instruction(line, &found)) fields.back().instructions.push_back(found);
    line.clear();
  };
  for (size_t i = 0; i < label.size(); ++i) {
    const char c = label[i];
    if (c == '\\' && i + 1 < label.size()) {
      if (label[++i] == 'l') {
        end_line();
      } else {
        line += label[i];
      }
    } else if (c == '|') {
      end_line();
      fields.emplace_back();
    } else if (c == '<') {
      const size_t end = std::min(label.find('>', i), label.size());
      fields.back().port = label.substr(i + 1, end - i - 1);
      i = end;
    } else if (c != '{' && c != '}') {
      line += c;
    }
  }
  end_line();
  return fields;
}

// The barrier of an operand list such as "B0" or "P1, B3".
uint8_t barrier_of(const std::string& operands) {
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    const bool starts = i == 0 || operands[i - 1] == ' ';
    if (!starts || operands[i] != 'B' || operands[i + 1] < '0' || operands[i + 1] > '9') continue;
    const int number = std::atoi(operands.c_str() + i + 1);
    return number < kWholeWarp ? static_cast<uint8_t>(number) : kNoBarrier;
  }
  return kNoBarrier;
}

// The general register of a BMOV; 255 for RZ.
uint8_t register_of(const std::string& operands) {
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    const bool starts = i == 0 || operands[i - 1] == ' ';
    if (!starts || operands[i] != 'R') continue;
    return operands[i + 1] == 'Z' ? UINT8_MAX
                                  : static_cast<uint8_t>(std::atoi(operands.c_str() + i + 1));
  }
  return UINT8_MAX;
}

bool is_opposite(const std::string& guard, const std::string& other) {
  return "@!" + guard.substr(1) == other || "@!" + other.substr(1) == guard;
}

uint8_t sync_of(const Instruction& instruction) {
  if (instruction.is("BSYNC")) return barrier_of(instruction.operands);
  const bool waits = instruction.is("WARPSYNC.ALL") || instruction.is("WARPSYNC.COLLECTIVE");
  return waits ? kWholeWarp : kNoBarrier;
}

// After these, lanes do not go on as they came.
bool cuts(const Instruction& instruction) {
  return sync_of(instruction) != kNoBarrier || instruction.is("YIELD") ||
         instruction.is("ENDCOLLECTIVE");
}

bool is_load(const Instruction& instruction) {
  constexpr const char* kLoads[] = {"LD", "LDG", "LDL", "LDS", "LDC", "ATOM", "ATOMG", "ATOMS"};
  return std::any_of(std::begin(kLoads), std::end(kLoads),
                     [&](const char* name) { return instruction.is(name); });
}

std::vector<std::string_view> operands_of(const Instruction& instruction) {
  std::vector<std::string_view> out;
  std::string_view text = instruction.operands;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    out.push_back(trim(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

bool is_predicate(std::string_view operand) {
  if (operand.starts_with('U')) operand.remove_prefix(1);
  return operand == "PT" ||
         (operand.size() == 2 && operand[0] == 'P' && operand[1] >= '0' && operand[1] <= '9');
}

// Whether the instruction writes this predicate: results stand in front of what is read, up to two
// predicates (one may follow a register).
bool writes(const Instruction& instruction, std::string_view predicate) {
  const auto operands = operands_of(instruction);
  size_t at = !operands.empty() && !is_predicate(operands[0]) ? 1 : 0;
  for (const size_t end = at + 2; at < end && at < operands.size(); ++at) {
    if (!is_predicate(operands[at])) return false;
    if (operands[at] == predicate) return true;
    if (instruction.is("VOTE") || instruction.is("VOTEU")) return false;
  }
  return false;
}

// "`(name)" in an instruction's operands.
std::string target_of(const std::string& operands) {
  const size_t from = operands.find("`(");
  const size_t end = operands.find(')', from);
  if (from == std::string::npos || end == std::string::npos) return "";
  return operands.substr(from + 2, end - from - 2);
}

class Reader {
 public:
  Reader(const DotGraph& dot, Graph* out) : dot_(dot), out_(*out) {}

  bool read(std::string* why) {
    why_.clear();
    collect_edges();
    for (const DotNode& node : dot_.nodes) {
      const auto label = node.attributes.find("label");
      if (label == node.attributes.end()) continue;
      add_function(node);
      cut_node(node, parse_record(label->second));
    }
    name_blocks();
    for (uint32_t i = 0; i < pieces_.size(); ++i) finish(pieces_[i], &out_.blocks[i]);
    find_votes();
    for (Function& function : out_.functions) function.entry = entry_of(function.name);
    *why = why_;
    return why_.empty();
  }

 private:
  void fail(const std::string& what) {
    if (why_.empty()) why_ = what;
  }

  void collect_edges() {
    for (const DotEdge& edge : dot_.edges) {
      Exits& exits = exits_[edge.from + ":" + edge.from_port];
      if (edge.from_side == "s") {
        exits.next = edge.to;
      } else if (std::find(exits.taken.begin(), exits.taken.end(), edge.to) == exits.taken.end()) {
        exits.taken.push_back(edge.to);
      }
    }
  }

  void add_function(const DotNode& node) {
    std::string name = node.subgraph;
    if (name.starts_with("cluster_")) name = name.substr(8);
    if (!function_index_.contains(name)) {
      function_index_[name] = static_cast<uint32_t>(out_.functions.size());
      out_.functions.push_back({name, kNone});
    }
    function_ = function_index_[name];
  }

  // A node's fields become pieces: a branch belongs to what stands before it, what follows it in
  // the node (-cfg) is a piece of its own.
  void cut_node(const DotNode& node, const std::vector<Field>& fields) {
    begin_piece(node.name);
    uint32_t part = 0;
    for (const Field& field : fields) {
      if (field.port.starts_with("exitpost")) {
        const std::string name = fmt::format("{}#{}", node.name, ++part);
        pieces_.back().next = name;
        begin_piece(name);
      }
      for (const Instruction& instruction : field.instructions) {
        const Piece& piece = pieces_.back();
        if (!piece.instructions.empty() && cuts(piece.instructions.back())) {
          const std::string name = fmt::format("{}#{}", node.name, ++part);
          pieces_.back().next = name;
          begin_piece(name);
        }
        pieces_.back().instructions.push_back(instruction);
      }
      const auto exits = exits_.find(node.name + ":" + field.port);
      if (exits == exits_.end()) continue;
      pieces_.back().taken = exits->second.taken;
      pieces_.back().next = exits->second.next;
    }
  }

  void begin_piece(const std::string& name) {
    pieces_.push_back({name, {}, {}, {}});
    Block block;
    block.name = name;
    block.function = function_;
    out_.blocks.push_back(block);
  }

  void name_blocks() {
    for (uint32_t i = 0; i < pieces_.size(); ++i) {
      if (!block_index_.try_emplace(pieces_[i].name, i).second) {
        fail(fmt::format("two blocks are named {}", pieces_[i].name));
      }
    }
  }

  uint32_t entry_of(const std::string& function) {
    const auto found = block_index_.find(function);
    if (found != block_index_.end()) return found->second;
    const uint32_t number = function_index_[function];
    for (uint32_t i = 0; i < out_.blocks.size(); ++i) {
      if (out_.blocks[i].function == number) return i;
    }
    return kNone;
  }

  void go_to(const std::string& name, Block* block) {
    const auto found = block_index_.find(name);
    if (found == block_index_.end()) {
      fail(fmt::format("block {} leads to {}, which is not there", block->name, name));
    } else {
      block->successors.push_back(found->second);
    }
  }

  void finish(const Piece& piece, Block* block) {
    block->instructions = static_cast<uint32_t>(piece.instructions.size());
    const Instruction last = piece.instructions.empty() ? Instruction{} : piece.instructions.back();
    block->address = last.address;
    block->sync = sync_of(last);
    block->collects = last.is("WARPSYNC.COLLECTIVE");
    block->disperses = last.is("ENDCOLLECTIVE");
    block->yields = last.is("YIELD");
    block->if_divided = last.is("BRA.DIV");
    block->loads = std::any_of(piece.instructions.begin(), piece.instructions.end(), is_load);
    for (const Instruction& instruction : piece.instructions) add_action(instruction, last, block);
    const bool ends = last.is("EXIT") || last.is("RET") || last.is("KILL");
    const bool falls = !ends || !last.guard.empty();
    if (falls && !piece.next.empty()) go_to(piece.next, block);
    for (const std::string& to : piece.taken) {
      if (to != piece.next) go_to(to, block);
    }
    if (ends) block->successors.push_back(last.is("RET") ? kReturn : kExit);
    if (last.is("CALL")) add_call(last, block);
    if (block->successors.empty()) block->successors.push_back(kExit);
  }

  // Of branches with a guard: whether a vote has written it, on all ways that come to them.
  void find_votes() {
    std::vector<std::vector<uint32_t>> before(out_.blocks.size());
    for (uint32_t b = 0; b < out_.blocks.size(); ++b) {
      for (const uint32_t to : out_.blocks[b].successors) {
        if (is_block(to)) before[to].push_back(b);
      }
    }
    for (uint32_t b = 0; b < out_.blocks.size(); ++b) {
      Block& block = out_.blocks[b];
      if (pieces_[b].instructions.empty() || block.successors.size() != 2) continue;
      const Instruction& last = pieces_[b].instructions.back();
      if (!last.is("BRA") || last.guard.empty() || block.if_divided) continue;
      const bool negated = last.guard[1] == '!';
      bool any = false;
      bool all = false;
      if (!votes_before(before, b, last.guard.substr(negated ? 2 : 1), &any, &all)) continue;
      // What all want happens unless any lane objects.
      if (any != all) block.vote = any != negated ? 1 : 0;
    }
  }

  // Whether only votes have written `predicate` where the last instruction of `from` reads it.
  bool votes_before(const std::vector<std::vector<uint32_t>>& before, uint32_t from,
                    const std::string& predicate, bool* any, bool* all) const {
    std::vector<uint32_t> open = {from};
    std::vector<bool> seen(before.size());
    while (!open.empty()) {
      const uint32_t b = open.back();
      open.pop_back();
      const auto& instructions = pieces_[b].instructions;
      const auto written =
          std::find_if(instructions.rbegin(), instructions.rend(),
                       [&](const Instruction& one) { return writes(one, predicate); });
      if (written != instructions.rend()) {
        if (!written->guard.empty()) return false;
        *any = *any || written->is("VOTE.ANY") || written->is("VOTEU.ANY");
        *all = *all || written->is("VOTE.ALL") || written->is("VOTEU.ALL");
        if (!written->is("VOTE") && !written->is("VOTEU")) return false;
        continue;
      }
      if (before[b].empty()) return false;
      for (const uint32_t one : before[b]) {
        if (!seen[one]) open.push_back(one);
        seen[one] = true;
      }
    }
    return true;
  }

  void add_call(const Instruction& last, Block* block) {
    if (!last.guard.empty()) return fail(fmt::format("block {} calls if", block->name));
    const auto found = function_index_.find(target_of(last.operands));
    if (found != function_index_.end()) block->call = found->second;
  }

  static void add_action(const Instruction& instruction, const Instruction& last, Block* block) {
    BarrierAction action = {BarrierOp::kOpen, barrier_of(instruction.operands)};
    if (action.barrier == kNoBarrier) return;
    if (instruction.is("BREAK")) {
      action.op = BarrierOp::kBreak;
      if (!instruction.guard.empty() && instruction.guard == last.guard) action.who = Who::kTakers;
      if (!instruction.guard.empty() && !last.guard.empty() &&
          is_opposite(instruction.guard, last.guard)) {
        action.who = Who::kOthers;
      }
    } else if (instruction.is("BMOV")) {
      const bool saves = instruction.operands.starts_with('R');
      action.op = saves ? BarrierOp::kSave : BarrierOp::kRestore;
      action.reg = register_of(instruction.operands);
    } else if (!instruction.is("BSSY")) {
      return;
    }
    block->actions.push_back(action);
  }

  const DotGraph& dot_;
  Graph& out_;
  uint32_t function_ = 0;
  std::string why_;
  std::vector<Piece> pieces_;  // as many as blocks
  std::unordered_map<std::string, Exits> exits_;
  std::unordered_map<std::string, uint32_t> block_index_;
  std::unordered_map<std::string, uint32_t> function_index_;
};

}  // namespace

bool read_disassembly(const DotGraph& dot, Graph* out, std::string* why) {
  *out = {};
  return Reader(dot, out).read(why);
}

}  // namespace warpcache::simt
