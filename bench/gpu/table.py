# SPDX-License-Identifier: Apache-2.0
"""A short table of one `warpcache-bench offline --json` or `warpcache-ablation --json` on standard input."""

import json
import sys

study = json.loads(sys.stdin.read())
if "fabric" not in study:
    print("{device}, key {key_size}, value {value_size}, batches of {batch}".format(**study))
    for row in study["rows"]:
        index = f"  load {row['load']:.3f}, sectors {row['sectors']:.3f}" if "load" in row else ""
        print(
            f"  {row['experiment']:<9} {row['variant']:<11} {row['requests_per_s'] / 1e6:8.1f} M/s"
            f"  batch {row['batch_us']:8.2f} us  registers {row['registers']:3}"
            f"  shared {row['shared_bytes_of_block']:6}{index}  wrong {row['wrong']}"
        )
    sys.exit()
what = (
    "ping"
    if study["ping"]
    else "key {key_size}, value {value_size}, zipf {zipf}, hits {hit_ratio}, sets {set_share}".format(**study)
)
print(study["fabric"])
print(f"{what}; the bus allows {study.get('bus_requests_per_s', 0) / 1e6:.0f} M/s")
for row in study["rows"]:
    print(
        f"  batch {row['batch']:>7} {row['requests_per_s'] / 1e6:8.1f} M/s"
        f"  p50 {row['batch_p50_us']:8.1f}  p99 {row['batch_p99_us']:8.1f} us"
        f"  {row.get('requests_per_j', 0) / 1e3:8.0f} k/J  wrong {row['wrong']}"
    )
