// SPDX-License-Identifier: Apache-2.0
//
// Operations with keys of all lengths and without a key, against CRCs that go byte by byte.
#include <Vkey_hash.h>
#include <Vkey_hash_one.h>

#include "key_crc.h"
#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

// `kOne`: row and tag are of one CRC.
template <typename Block, bool kOne>
void run(const Setup& setup) {
  Model<Block> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  // Of "123456789", as published, without the last inversion.
  bench.check(crc("123456789", ~0u, kRowPolynomial) == static_cast<uint32_t>(~0xe3069283u),
              "the reference is no CRC-32C");
  Stream& op = bench.input("op", model->op_valid, model->op_ready, {model->op});
  Stream& key = bench.input("key", model->key_valid, model->key_ready, {model->key_data});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_op, model->out_row_hash, model->out_tag_hash});
  Stream& out_key =
      bench.output("out_key", model->out_key_valid, model->out_key_ready, {model->out_key_data});
  // The last word of a key and its operation go on together.
  out.may_withdraw = out_key.may_withdraw = true;
  // Without a key there are no hashes.
  out.normalize = [](Beat& beat) {
    if (Record(kMeta, beat[0]).get("kbeats").zero()) beat[1] = beat[2] = 0;
  };
  for (uint64_t i = bench.count(5000); i > 0; --i) {
    Record meta(kMeta, random_bits(kMeta, random));
    const uint32_t length =
        random.below(8) == 0 ? 0 : 1 + random.below(random.below(6) == 0 ? 250 : 24);
    const std::string bytes = random_bytes(random, length);
    meta.set("klen", length).set("kbeats", beats_of(length));
    op.push({meta.bits()});
    for (const Bits& word : words_of(bytes)) {
      key.push({word});
      out_key.push({word});
    }
    const uint32_t row = key_crc(bytes, kRowPolynomial);
    const uint32_t tag = kOne ? row << 16 | row >> 16 : key_crc(bytes, kTagPolynomial);
    out.push({meta.bits(), length == 0 ? 0 : row, length == 0 ? 0 : tag});
  }
  bench.run();
}

const Registered registered("key_hash", run<Vkey_hash, false>);
const Registered one("key_hash_one", run<Vkey_hash_one, true>);

}  // namespace
}  // namespace warpcache::rtl
