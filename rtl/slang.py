# SPDX-License-Identifier: Apache-2.0
"""What slang says about the sources of the core: rtl/slang.py FILE... Ends with 1 if it says anything."""

import sys

from pyslang.driver import Driver

TOPS = "--top mc_core --top mc_lanes --top nic_cache"


def main() -> int:
    driver = Driver()
    driver.addStandardArgs()
    if not driver.parseCommandLine(f"slang -Wextra -Werror {TOPS} " + " ".join(sys.argv[1:])):
        return 1
    if not driver.processOptions() or not driver.parseAllSources():
        return 1
    return 0 if driver.runFullCompilation(True) else 1


if __name__ == "__main__":
    sys.exit(main())
