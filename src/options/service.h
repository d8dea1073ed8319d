// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpcache {

// Reports to the service manager that the server serves (NOTIFY_SOCKET, sd_notify(3)). Does nothing
// where none asks for it. Once; it changes the environment.
void notify_ready();

}  // namespace warpcache
