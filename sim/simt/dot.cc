// SPDX-License-Identifier: Apache-2.0
#include "simt/dot.h"

#include <fmt/core.h>

#include <cctype>
#include <unordered_map>

namespace warpcache::simt {
namespace {

constexpr uint32_t kNestingMax = 64;

enum class TokenKind { kEnd, kWord, kArrow, kMark, kBad };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // a mark is one character
  bool quoted = false;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  uint32_t line() const { return line_; }

  Token next() {
    skip_blank();
    if (at_ >= text_.size()) return {};
    const char c = text_[at_];
    if (c == '"') return quoted();
    if (c == '<') return html();
    if (c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == '>') {
      at_ += 2;
      return {TokenKind::kArrow, "->"};
    }
    if (is_word(c) || c == '-') return word();
    ++at_;
    return {TokenKind::kMark, std::string(1, c)};
  }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || (c & 0x80);
  }
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

  void skip_to(std::string_view end) {
    while (at_ < text_.size() && !starts(end)) line_ += text_[at_++] == '\n';
    at_ = at_ < text_.size() ? at_ + end.size() : at_;
    line_ += end == "\n";
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        line_ += text_[at_++] == '\n';
      } else if (text_[at_] == '#' || starts("//")) {
        skip_to("\n");
      } else if (starts("/*")) {
        at_ += 2;
        skip_to("*/");
      } else {
        return;
      }
    }
  }

  Token word() {
    const size_t from = at_++;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return {TokenKind::kWord, std::string(text_.substr(from, at_ - from))};
  }

  Token quoted() {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      line_ += c == '\n';
      if (c == '"') {
        ++at_;
        return {TokenKind::kWord, out, true};
      }
      if (c == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '"') out += c;
        out += text_[++at_];
      } else {
        out += c;
      }
    }
    return {TokenKind::kBad, "a string without its end"};
  }

  Token html() {
    const size_t from = at_;
    uint32_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      line_ += text_[at_] == '\n';
      if (text_[at_] == '<') ++depth;
      if (text_[at_] == '>' && --depth == 0) {
        ++at_;
        return {TokenKind::kWord, std::string(text_.substr(from, at_ - from)), true};
      }
    }
    return {TokenKind::kBad, "a string in <> without its end"};
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, DotGraph* out) : lexer_(text), out_(*out) { step(); }

  bool parse(std::string* why) {
    if (is_keyword("strict")) step();
    const bool directed = is_keyword("digraph");
    if (directed) {
      step();
      if (token_.kind == TokenKind::kWord) step();
    }
    if (!directed) {
      fail("no digraph");
    } else if (take('{')) {
      statements("", 0);
    }
    if (why_.empty()) return true;
    *why = why_;
    return false;
  }

 private:
  void step() {
    token_ = lexer_.next();
    if (token_.kind == TokenKind::kBad) fail(token_.text);
  }
  bool is_mark(char c) const { return token_.kind == TokenKind::kMark && token_.text[0] == c; }
  bool is_keyword(const char* word) const {
    return token_.kind == TokenKind::kWord && !token_.quoted && token_.text == word;
  }
  void fail(const std::string& what) {
    if (why_.empty()) why_ = fmt::format("line {}: {}", lexer_.line(), what);
  }
  bool take(char c) {
    if (!is_mark(c)) {
      fail(fmt::format("expected '{}', found '{}'", c, token_.text));
      return false;
    }
    step();
    return true;
  }
  std::string take_word() {
    if (token_.kind != TokenKind::kWord) {
      fail(fmt::format("expected a name, found '{}'", token_.text));
      return "";
    }
    std::string text = token_.text;
    step();
    return text;
  }

  void statements(const std::string& subgraph, uint32_t depth) {
    if (depth > kNestingMax) return fail("subgraphs nest too deep");
    while (why_.empty() && !is_mark('}')) {
      if (token_.kind == TokenKind::kEnd) return fail("the graph has no end");
      statement(subgraph, depth);
      if (is_mark(';')) step();
    }
    take('}');
  }

  void statement(const std::string& subgraph, uint32_t depth) {
    if (is_keyword("subgraph") || is_mark('{')) {
      std::string name = subgraph;
      if (is_keyword("subgraph")) {
        step();
        if (token_.kind == TokenKind::kWord) name = take_word();
      }
      if (take('{')) statements(name, depth + 1);
      return;
    }
    if (is_keyword("node") || is_keyword("edge") || is_keyword("graph")) {
      step();
      attributes();
      return;
    }
    node_or_edge(subgraph);
  }

  void node_or_edge(const std::string& subgraph) {
    DotEdge end = endpoint();
    if (is_mark('=')) {  // an attribute of the graph
      step();
      take_word();
      return;
    }
    const size_t first_edge = out_.edges.size();
    const size_t node = node_index(end.from, subgraph);
    bool chained = false;
    while (why_.empty() && token_.kind == TokenKind::kArrow) {
      step();
      DotEdge next = endpoint();
      node_index(next.from, subgraph);
      end.to = next.from;
      out_.edges.push_back(end);
      end = next;
      chained = true;
    }
    const DotAttributes found = attributes();
    for (size_t i = first_edge; i < out_.edges.size(); ++i) out_.edges[i].attributes = found;
    if (chained) return;
    for (const auto& [key, value] : found) out_.nodes[node].attributes[key] = value;
  }

  // NAME, NAME:PORT or NAME:PORT:SIDE, as the beginning of an edge.
  DotEdge endpoint() {
    DotEdge end;
    end.from = take_word();
    for (std::string* part : {&end.from_port, &end.from_side}) {
      if (!is_mark(':')) break;
      step();
      *part = take_word();
    }
    return end;
  }

  DotAttributes attributes() {
    DotAttributes found;
    while (why_.empty() && is_mark('[')) {
      step();
      while (why_.empty() && !is_mark(']')) {
        const std::string key = take_word();
        if (is_mark('=')) {
          step();
          found[key] = take_word();
        }
        if (is_mark(',') || is_mark(';')) step();
      }
      take(']');
    }
    return found;
  }

  size_t node_index(const std::string& name, const std::string& subgraph) {
    const auto [at, is_new] = index_.try_emplace(name, out_.nodes.size());
    if (is_new) out_.nodes.push_back({name, subgraph, {}});
    return at->second;
  }

  Lexer lexer_;
  DotGraph& out_;
  Token token_;
  std::string why_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace

bool parse_dot(std::string_view text, DotGraph* out, std::string* why) {
  *out = {};
  return Parser(text, out).parse(why);
}

}  // namespace warpcache::simt
