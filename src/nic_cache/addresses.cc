// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/addresses.h"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace warpcache::nic_cache {

namespace {

// The VLAN tag of `name` if it is a VLAN interface of `parent`; 0 if it is `parent` itself; -1
// else.
int tag_on(int control, const std::string& name, const std::string& parent) {
  if (name == parent) return 0;
  vlan_ioctl_args request = {};
  name.copy(request.device1, sizeof request.device1 - 1);
  request.cmd = GET_VLAN_REALDEV_NAME_CMD;
  if (ioctl(control, SIOCGIFVLAN, &request) != 0 || parent != request.u.device2) return -1;
  request.cmd = GET_VLAN_VID_CMD;
  return ioctl(control, SIOCGIFVLAN, &request) == 0 ? request.u.VID : -1;
}

bool read_address(const sockaddr& address, IpAddress* out) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in4 = {};
    std::memcpy(&in4, &address, sizeof in4);
    *out = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(out->data() + 12, &in4.sin_addr, 4);
    return true;
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in6 = {};
  std::memcpy(&in6, &address, sizeof in6);
  std::memcpy(out->data(), &in6.sin6_addr, 16);
  return true;
}

}  // namespace

InterfaceAddresses addresses_of(const std::string& interface) {
  InterfaceAddresses found;
  ifaddrs* list = nullptr;
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0 || getifaddrs(&list) != 0) {
    if (control >= 0) (void)close(control);
    return found;
  }
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const std::string name = one->ifa_name;
    if (one->ifa_addr->sa_family == AF_PACKET) {
      if (name != interface) continue;
      sockaddr_ll link = {};
      std::memcpy(&link, one->ifa_addr, sizeof link);
      std::memcpy(found.mac.data(), link.sll_addr, found.mac.size());
      continue;
    }
    const int tag = tag_on(control, name, interface);
    InterfaceAddress address;
    if (tag < 0 || !read_address(*one->ifa_addr, &address.address)) continue;
    address.vlan = static_cast<uint32_t>(tag);
    found.addresses.push_back(address);
  }
  freeifaddrs(list);
  (void)close(control);
  return found;
}

}  // namespace warpcache::nic_cache
