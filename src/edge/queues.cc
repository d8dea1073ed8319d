// SPDX-License-Identifier: Apache-2.0
#include "edge/queues.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "base/atomic.h"

using warpcache::compare_exchange;
using warpcache::load_acquire;
using warpcache::store_release;
using warpcache::edge::EventEntry;
using warpcache::edge::EventState;
using warpcache::edge::half_of;
using warpcache::edge::kClosedBit;
using warpcache::edge::kEventsMax;
using warpcache::edge::kFree;
using warpcache::edge::kMagic;
using warpcache::edge::kQueuesOffset;
using warpcache::edge::kTakenAtOnceMax;
using warpcache::edge::kVersion;
using warpcache::edge::number_at;
using warpcache::edge::number_of;
using warpcache::edge::numbered;

edge_queues::~edge_queues() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

edge_status edge_queues::map(int file, uint64_t bytes) {
  const int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (file >= 0) close(file);
  if (data == MAP_FAILED) return EDGE_NO_SPACE;
  data_ = static_cast<uint8_t*>(data);
  bytes_ = bytes;
  return EDGE_OK;
}

edge_status edge_queues::create(const std::string& path, uint64_t bytes, bool* existed) {
  *existed = false;
  int file = -1;
  if (!path.empty()) {
    file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return EDGE_BAD_ARGUMENT;
    struct stat facts = {};
    *existed = fstat(file, &facts) == 0 && static_cast<uint64_t>(facts.st_size) == bytes;
    if (!*existed && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      close(file);
      return EDGE_NO_SPACE;
    }
  }
  const edge_status mapped = map(file, bytes);
  if (mapped != EDGE_OK) return mapped;
  *existed = *existed && header().magic == kMagic && header().version == kVersion;
  if (*existed) return EDGE_OK;
  std::memset(data_, 0, kQueuesOffset);
  header().version = kVersion;
  header().events = kEventsMax;
  header().bytes = bytes;
  store_release(&header().magic, kMagic);
  return EDGE_OK;
}

edge_status edge_queues::attach(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return EDGE_BAD_ARGUMENT;
  struct stat facts = {};
  if (fstat(file, &facts) != 0 || static_cast<uint64_t>(facts.st_size) < kQueuesOffset) {
    close(file);
    return EDGE_BAD_ARGUMENT;
  }
  const edge_status mapped = map(file, static_cast<uint64_t>(facts.st_size));
  if (mapped != EDGE_OK) return mapped;
  const bool known = load_acquire(&header().magic) == kMagic && header().version == kVersion;
  return known ? EDGE_OK : EDGE_BAD_ARGUMENT;
}

bool edge_queues::is_open(uint32_t id) const {
  return id < kEventsMax &&
         load_acquire(&event(id).state) == static_cast<uint32_t>(EventState::kOpen);
}

edge_status edge_queues::schedule(uint32_t id, const void* parameters, uint32_t parameter_bytes,
                                  uint32_t blocks, uint32_t* number) {
  Doorbell doorbell;
  const edge_status status = prepare(id, parameters, parameter_bytes, blocks, &doorbell);
  if (status != EDGE_OK) return status;
  store_release(doorbell.word, doorbell.value);
  if (number != nullptr) *number = number_of(doorbell.value);
  return EDGE_OK;
}

edge_status edge_queues::prepare(uint32_t id, const void* parameters, uint32_t parameter_bytes,
                                 uint32_t blocks, Doorbell* doorbell) {
  if (!is_open(id)) return EDGE_CLOSED;
  EventEntry& queue = event(id);
  if (parameter_bytes != queue.words * 4 || (queue.flags & EDGE_DEVICE_QUEUE) != 0 ||
      queue.period_us != 0 || (blocks != 0 && (queue.flags & EDGE_MODIFIABLE) == 0) ||
      blocks > 0xffff) {
    return EDGE_BAD_ARGUMENT;
  }
  uint64_t head = load_acquire(&queue.head);
  do {
    if ((head & kClosedBit) != 0) return EDGE_CLOSED;
    const auto position = static_cast<uint32_t>(head);
    const uint64_t free = numbered(number_at(position), kFree);
    if (load_acquire(completion(queue, position)) != free) {
      // Another submitter may have taken this entry since `head` was read.
      const uint64_t seen = load_acquire(&queue.head);
      if (seen == head) return EDGE_FULL;
      head = seen;
      continue;
    }
    if (compare_exchange(&queue.head, head, uint64_t{static_cast<uint32_t>(head + 1)})) break;
  } while (true);
  const auto position = static_cast<uint32_t>(head);
  uint64_t* const words = submission(queue, position);
  for (uint32_t i = 0; i < queue.words; ++i) {
    uint32_t word;
    std::memcpy(&word, static_cast<const uint8_t*>(parameters) + i * 4, 4);
    store_release(&words[1 + i], numbered(number_at(position), word));
  }
  *doorbell = {&words[0], numbered(number_at(position), blocks)};
  return EDGE_OK;
}

void edge_queues::change(const Doorbell& doorbell, uint32_t word, uint32_t value) {
  store_release(doorbell.word + 1 + word, numbered(number_of(doorbell.value), value));
}

bool edge_queues::Doorbell::is_rung() const { return load_acquire(word) == value; }

edge_status edge_queues::poll(uint32_t id, uint32_t* number, uint32_t* code) {
  if (!is_open(id)) return EDGE_CLOSED;
  EventEntry& queue = event(id);
  const auto position = static_cast<uint32_t>(load_acquire(&queue.tail));
  const edge_status taken = take(id, number_at(position), code);
  if (taken != EDGE_OK) return taken;
  if (number != nullptr) *number = number_at(position);
  store_release(&queue.tail, uint64_t{position + 1});
  return EDGE_OK;
}

edge_status edge_queues::take(uint32_t id, uint32_t number, uint32_t* code) {
  if (!is_open(id)) return EDGE_CLOSED;
  EventEntry& queue = event(id);
  uint64_t* const word = completion(queue, number - 1);
  const uint64_t seen = load_acquire(word);
  if (number_of(seen) != number || half_of(seen) == kFree) return EDGE_NOT_DONE;
  if (code != nullptr) *code = half_of(seen);
  store_release(word, numbered(number + queue.depth, kFree));
  return EDGE_OK;
}

void edge_queues::clear(EventEntry& queue) {
  for (uint32_t i = 0; i < queue.depth; ++i) {
    std::memset(submission(queue, i), 0, queue.stride);
    store_release(completion(queue, i), numbered(number_at(i), kFree));
  }
}

bool edge_queues::idle(const EventEntry& queue) const {
  const auto head = static_cast<uint32_t>(load_acquire(&queue.head));
  for (uint32_t i = 1; i <= queue.depth; ++i) {
    const uint32_t number = number_at(head - i);
    if (load_acquire(completion(queue, head - i)) == numbered(number, kFree)) return false;
  }
  return true;
}

void edge_queues::complete_all(EventEntry& queue, uint32_t code) {
  complete_until(queue, static_cast<uint32_t>(load_acquire(&queue.head)), code);
}

void edge_queues::complete_taken(EventEntry& queue, uint32_t code) {
  uint32_t taken = load_acquire(&queue.taken);
  // One that has ended already is not to start again either.
  for (uint32_t i = 0; i < kTakenAtOnceMax; ++i) {
    if (number_of(load_acquire(submission(queue, taken))) != number_at(taken)) break;
    ++taken;
  }
  complete_until(queue, taken, code);
  store_release(&queue.taken, taken);
}

// The events before position `end`.
void edge_queues::complete_until(EventEntry& queue, uint32_t end, uint32_t code) {
  const auto head = static_cast<uint32_t>(load_acquire(&queue.head));
  for (uint32_t i = queue.depth; i != 0; --i) {
    const uint32_t position = head - i;
    uint64_t* const word = completion(queue, position);
    if (load_acquire(word) != numbered(number_at(position), kFree)) continue;
    if (static_cast<int32_t>(position - end) >= 0) continue;
    const bool self_freeing = (queue.flags & EDGE_SELF_FREEING) != 0;
    store_release(word, self_freeing ? numbered(number_at(position) + queue.depth, kFree)
                                     : numbered(number_at(position), code));
  }
}

extern "C" {

edge_status edge_attach(const char* path, edge_queues** queues) {
  auto* const made = new (std::nothrow) edge_queues();
  if (made == nullptr) return EDGE_NO_SPACE;
  const edge_status status = made->attach(path);
  if (status == EDGE_OK) {
    *queues = made;
  } else {
    delete made;
  }
  return status;
}

void edge_detach(edge_queues* queues) { delete queues; }

edge_status edge_schedule(edge_queues* queues, uint32_t id, const void* parameters,
                          uint32_t parameter_bytes, uint32_t blocks, uint32_t* number) {
  return queues->schedule(id, parameters, parameter_bytes, blocks, number);
}

edge_status edge_poll(edge_queues* queues, uint32_t id, uint32_t* number, uint32_t* code) {
  return queues->poll(id, number, code);
}

edge_status edge_take(edge_queues* queues, uint32_t id, uint32_t number, uint32_t* code) {
  return queues->take(id, number, code);
}

uint32_t edge_notified(const edge_queues* queues, uint32_t id) {
  return id < kEventsMax ? load_acquire(&queues->event(id).notified) : 0;
}

const char* edge_status_text(edge_status status) {
  switch (status) {
    case EDGE_OK:
      return "done";
    case EDGE_FULL:
      return "the queue is full";
    case EDGE_CLOSED:
      return "the event is not registered";
    case EDGE_NOT_DONE:
      return "not yet completed";
    case EDGE_BAD_ARGUMENT:
      return "an argument is wrong";
    case EDGE_NO_SPACE:
      return "no space";
    case EDGE_NO_DEVICE:
      return "no GPU that can do this";
    case EDGE_TIMEOUT:
      return "the GPU did not answer in time";
    case EDGE_FAULT:
      return "the GPU has failed";
  }
  return "unknown";
}

}  // extern "C"
