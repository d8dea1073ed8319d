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
  return instruction.is("WARPSYNC.ALL") ? kWholeWarp : kNoBarrier;
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
        if (!piece.instructions.empty() && sync_of(piece.instructions.back()) != kNoBarrier) {
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
