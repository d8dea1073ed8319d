// SPDX-License-Identifier: Apache-2.0
//
// Headers and requests are processed on the CPU.
#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "packets/backend.h"
#include "packets/host_path.h"
#include "store/testing/store_fixture.h"

namespace warpcache::packets {

namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(uint16_t udp_port) : path_(udp_port, engine_, setup_engine_) {}

  std::string set_up(const std::string& commands) override { return path_.set_up(commands); }
  void add(Bytes frame) override { path_.add(frame); }
  std::vector<std::string> run() override {
    std::vector<std::string> replies;
    path_.run(replies);
    return replies;
  }
  void advance(uint32_t seconds) override { store_->set_clock(store_->clock().now + seconds); }
  uint64_t malformed() const override { return path_.malformed(); }
  uint64_t count(net::PacketVerdict verdict) const override { return path_.count(verdict); }

 private:
  std::unique_ptr<store::Store> store_ = store::make_store(store::quiet_config(uint64_t{64} << 20));
  engine::StoreAdmin admin_{*store_};
  engine::CpuEngine engine_{{}, *store_, admin_};
  engine::CpuEngine setup_engine_{{}, *store_, admin_};
  HostPath path_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(uint16_t udp_port) {
  return std::make_unique<CpuBackend>(udp_port);
}

}  // namespace warpcache::packets
