// SPDX-License-Identifier: Apache-2.0
#include "model/player.h"

#include <algorithm>
#include <utility>

#include "model/pipeline.h"

namespace warpcache::model {

namespace {

ModelConfig config_for(const Script& script, const Server& server) {
  ModelConfig config;
  config.item_size_max = script.item_size_max;
  config.now = server.now();
  config.unix_start = server.unix_start();
  config.version = server.version();
  config.as_1_6_18 = config.version.starts_with("1.6.18");
  return config;
}

// Of requests that end a round. A longer message is given up.
constexpr size_t kEndBytesMax = 64 * 1024;

}  // namespace

Player::Player(const Script& script, Server& server, bool keeps_transcript)
    : script_(script),
      server_(server),
      keeps_transcript_(keeps_transcript),
      book_(server.first_cas(), server.cas_follows_requests()),
      model_(config_for(script, server), book_) {
  played_.transcript.item_size_max = script_.item_size_max;
  played_.transcript.cuts = script_.cuts;
}

void Player::run_step(const Step& step) {
  if (step.answer) return;
  if (keeps_transcript_) played_.transcript.steps.push_back(step);
  if (step.stream == kClock) {
    model_.advance(step.seconds);
    server_.advance(step.seconds);
    return;
  }
  ++played_.commands;
  const Surroundings surroundings = {
      [this](const std::string& key) { return model_.cas_number(key); }, model_.unix_time()};
  const std::string bytes = render(step.text, surroundings);
  if (step.stream == kDatagram) {
    if (bytes.empty()) return;
    server_.send_datagram(bytes);
    Reply reply;
    model_.receive_datagram(bytes, reply);
    datagrams_.push_back(std::move(reply));
    return;
  }
  std::unique_ptr<Stream>& stream = streams_[step.stream];
  if (stream == nullptr || (stream->session.closed && !touched_.contains(step.stream))) {
    stream = std::make_unique<Stream>(book_);
  }
  touched_.insert(step.stream);
  const Reply reply = say(step.stream, bytes);
  if (keeps_transcript_) stream->said.add(reply);
}

// Returns the reply that is expected.
Reply Player::say(int number, const std::string& bytes) {
  const std::unique_ptr<Stream>& stream = streams_[number];
  server_.send(number, bytes);
  Reply reply;
  model_.receive(stream->session, bytes, reply);
  stream->matcher.expect(reply);
  return reply;
}

// Says something that is answered, on each stream of the round. As the end of a message that has
// not ended it is a part of that one, for the server and for the model.
void Player::end_round() {
  const std::string text = "mn\r\n";
  const std::string binary = std::string("\x80\x0a", 2) + std::string(22, '\0');  // a noop
  for (const int number : touched_) {
    const Session& session = streams_[number]->session;
    const bool is_binary = session.language == Session::Language::kBinary;
    const std::string& request = is_binary ? binary : text;
    bool answered = false;
    for (size_t said = 0; !answered && !session.closed && said < kEndBytesMax;
         said += request.size()) {
      const bool ends_it = !session.waits();
      (void)say(number, request);
      answered = ends_it;
    }
    if (!answered && !session.closed) played_.loss = "a message that does not end";
  }
}

bool Player::compare_stream(uint32_t round, int number, Stream& stream) {
  bool right = stream.matcher.take(server_.take_output(number));
  while (right && !stream.matcher.even() && server_.wait(number)) {
    right = stream.matcher.take(server_.take_output(number));
  }
  const bool settled = !stream.session.waits();
  if (settled && stream.session.closed && !server_.closed(number)) (void)server_.wait(number);
  if (!right || (settled && !stream.matcher.even())) {
    const char* const short_of = server_.closed(number)
                                     ? "the stream has ended before all was answered"
                                     : "one says more than the other";
    differ(round, number, right ? short_of : "the replies differ", stream.matcher.missing(),
           stream.matcher.surplus());
    return false;
  }
  if (settled && stream.session.closed != server_.closed(number)) {
    differ(round, number, "closed by one alone", stream.session.closed ? "closed" : "open",
           server_.closed(number) ? "closed" : "open");
    return false;
  }
  write_down(round, number, stream.said);
  stream.said = {};
  return true;
}

bool Player::compare_datagrams(uint32_t round) {
  const std::vector<std::string> got = server_.take_datagrams();
  if (got.size() != datagrams_.size()) {
    differ(round, kDatagram, "datagrams answered", std::to_string(datagrams_.size()),
           std::to_string(got.size()));
    return false;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    ReplyMatcher matcher(book_);
    matcher.expect(datagrams_[i]);
    if (!matcher.take(got[i]) || !matcher.even()) {
      differ(round, kDatagram, "the replies differ", matcher.missing(), matcher.surplus());
      return false;
    }
    write_down(round, kDatagram, datagrams_[i]);
  }
  datagrams_.clear();
  return true;
}

// What is stored at the end, asked of the store itself. Not while a stream is in the middle of a
// message that one of both may have carried out already.
void Player::compare_contents() {
  const auto waits = [](const auto& entry) { return entry.second->session.waits(); };
  if (std::any_of(streams_.begin(), streams_.end(), waits)) return;
  const auto got = server_.contents();
  const auto expected = model_.contents();
  if (!got.has_value() || *got == expected) return;
  const auto list = [](const std::map<std::string, std::string>& items) {
    std::string text;
    for (const auto& [key, value] : items) text += key + "=" + value + " ";
    return text;
  };
  differ(0, 0, "what is stored at the end", list(expected), list(*got));
}

void Player::write_down(uint32_t round, int stream, const Reply& reply) {
  if (!keeps_transcript_) return;
  std::string text;
  for (const ReplyPiece& piece : reply.pieces()) {
    if (piece.kind == ReplyPiece::Kind::kBytes) {
      text += piece.bytes;
    } else if (!piece.cas.chosen_by_server) {
      text += std::to_string(piece.cas.number);
    } else {
      const auto shown = shown_cas_.emplace(piece.cas.number, shown_cas_.size() + 1).first;
      text += "<cas" + std::to_string(shown->second) + ">";
    }
  }
  if (text.empty()) return;
  Step step;
  step.round = round;
  step.stream = stream;
  step.answer = true;
  step.text = digest(text);
  played_.transcript.steps.push_back(std::move(step));
}

bool Player::send_round() {
  const std::vector<Step>& steps = script_.steps;
  if (next_step_ == steps.size()) return false;
  const uint32_t round = steps[next_step_].round;
  while (next_step_ < steps.size() && steps[next_step_].round == round) {
    run_step(steps[next_step_++]);
  }
  played_.loss = model_.loss();
  if (server_.runs_on() && played_.loss.empty()) {
    end_round();
    if (played_.loss.empty()) played_.loss = model_.loss();
  }
  return played_.loss.empty();
}

bool Player::compare_round(bool ran) {
  const uint32_t round = script_.steps[next_step_ - 1].round;
  if (!ran) {
    differ(round, 0, "the server is stuck", "", "");
    return false;
  }
  for (const int number : touched_) {
    if (!compare_stream(round, number, *streams_[number])) return false;
  }
  touched_.clear();
  return compare_datagrams(round);
}

Played Player::end() {
  const bool through = next_step_ == script_.steps.size() && played_.loss.empty();
  if (through && !played_.difference.has_value()) {
    compare_contents();
    const std::string broken = server_.finish();
    const uint32_t round = script_.steps.empty() ? 0 : script_.steps.back().round;
    if (!broken.empty()) differ(round, 0, broken, "", "");
  }
  return std::move(played_);
}

Played play(const Script& script, Server& server) {
  Player player(script, server, true);
  while (player.send_round() && player.compare_round(server.run())) {
  }
  return player.end();
}

std::string describe(const Difference& difference) {
  const std::string stream =
      difference.stream == kDatagram ? "udp" : "stream " + std::to_string(difference.stream);
  return "round " + std::to_string(difference.round) + ", " + stream + ": " + difference.what +
         "\n  model:  " + digest(difference.expected) + "\n  server: " + digest(difference.got) +
         "\n";
}

std::unique_ptr<Server> start_pipeline(const Script& script, engine::RigKind engine) {
  PipelineConfig config;
  config.engine = engine;
  config.item_size_max = static_cast<uint32_t>(script.item_size_max);
  config.cuts = script.cuts;
  return std::make_unique<Pipeline>(config);
}

Script shrink(Script script, const std::function<bool(const Script&)>& differs) {
  Script uncut = script;
  uncut.cuts = 0;
  if (differs(uncut)) script = uncut;
  size_t chunk = std::max<size_t>(script.steps.size() / 2, 1);
  while (true) {
    bool smaller = false;
    for (size_t at = 0; at < script.steps.size();) {
      Script candidate = script;
      const auto begin = candidate.steps.begin() + static_cast<ptrdiff_t>(at);
      const size_t count = std::min(chunk, candidate.steps.size() - at);
      candidate.steps.erase(begin, begin + static_cast<ptrdiff_t>(count));
      if (differs(candidate)) {
        script = std::move(candidate);
        smaller = true;
      } else {
        at += chunk;
      }
    }
    if (chunk > 1) {
      chunk /= 2;
    } else if (!smaller) {
      return script;
    }
  }
}

}  // namespace warpcache::model
