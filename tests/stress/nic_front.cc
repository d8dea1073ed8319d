// SPDX-License-Identifier: Apache-2.0
#include "stress/nic_front.h"

#include <chrono>
#include <vector>

#include "nic_cache/store_copies.h"

namespace warpcache::stress {

std::string NicFront::load() {
  program_ = std::make_unique<nic_cache::LoadedProgram>();
  std::string refused = program_->load(1);
  if (!refused.empty()) return refused;
  program_->table().keep_dropped();
  program_->control().write_back = write_back_on_ ? 1 : 0;
  used_ = false;
  write_back_ = std::make_unique<nic_cache::WriteBack>(program_->program());
  return "";
}

// Copies of an earlier store's items must not be found.
store::CopyHooks NicFront::hooks() {
  if (program_ == nullptr || used_) {
    const std::string refused = load();
    WC_ASSERT(refused.empty());
  }
  used_ = true;
  return nic_cache::hooks_of(program_->table());
}

void NicFront::start(engine::Rig& rig) {
  rig_ = &rig;
  if (write_back_on_) writer_.emplace(dynamic_cast<store::Store&>(rig.store()));
  stopping_ = false;
  thread_ = std::thread([this] {
    std::vector<std::vector<uint8_t>> dropped;
    while (!stopping_) {
      program_->program().take_wanted([this](Bytes key) { copy(key); });
      dropped.clear();
      program_->table().take_dropped(&dropped);
      for (const std::vector<uint8_t>& key : dropped) copy({key.data(), key.size()});
      if (program_->table().retire_begin() && program_->program().wait_for_runs())
        program_->table().retire_end();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
}

// As the server's cache does it.
void NicFront::copy(Bytes key) {
  const uint32_t version = program_->table().version_of(key);
  settle();
  rig_->visit_item(key, [&](const store::Item& item) {
    nic_cache::copy_item(program_->table(), item, version);
  });
}

void NicFront::settle() {
  write_back_->settle([this](const nic_write& write) {
    const Bytes key = {write.key, write.key_size};
    const Bytes value = {write.value, write.value_size};
    while (!writer_->set(key, write.client_flags, value, write.cas)) std::this_thread::yield();
  });
}

void NicFront::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  thread_.join();
  settle();
  writer_.reset();
}

// What is missed is copied at once and asked for again, so that more reads are answered while the
// item changes. Of a set only the first word is a key, and without write-back the program passes it
// anyway.
std::string NicFront::ask(const std::string& command) {
  std::string reply = program_->ask(command);
  const bool writes = command.starts_with("set ");
  if (reply.empty() && (write_back_on_ || !writes)) {
    for (size_t at = command.find(' '); at != std::string::npos; at = command.find(' ', at + 1)) {
      const size_t end = command.find_first_of(" \r", at + 1);
      copy(bytes_of(std::string_view(command).substr(at + 1, end - at - 1)));
      if (writes) break;
    }
    reply = program_->ask(command);
  }
  if (!reply.empty()) ++answered_;
  if (reply == "STORED\r\n") ++written_;
  return reply;
}

}  // namespace warpcache::stress
