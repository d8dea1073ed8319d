// SPDX-License-Identifier: Apache-2.0
//
// Gets that have been passed to the host, or may be, and whose replies may be copied. Each is in the
// slot that its asker's hash names; where that one is taken, the reply is not copied. A write to the
// row of a get kills it, as does a flush: its reply may be older than the write.
//
// A slot is free again when its reply has come, when the core has answered the get itself, or at the
// second tick after it has been passed to the host.
module fill_table
  import wc_pkg::*;
#(
    parameter int LOG = 6,
    parameter int ROW_BITS = 11
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           tick,          // once a second
    // A get goes to the store. REQUIRES: not in a cycle with `kill`.
    input  logic           begin_valid,
    input  logic [LOG-1:0] begin_slot,
    output logic           begin_ok,      // it gets the slot
    input  asker_t         begin_asker,
    input  logic [31:0]    begin_row_hash,
    input  logic [31:0]    begin_tag_hash,
    // What has become of it. REQUIRES: it has begun, and has not been settled.
    input  logic           settle_valid,
    input  logic [LOG-1:0] settle_slot,
    input  logic           settle_passed, // to the host; else the slot is free
    // A write goes to the store.
    input  logic           kill_valid,
    input  logic           kill_all,
    input  logic [31:0]    kill_row_hash,
    // A reply of the host. `known`: its get was passed to the host; `alive`: and it may be copied.
    input  logic [LOG-1:0] reply_slot,
    input  asker_t         reply_asker,
    input  logic [31:0]    reply_row_hash,
    input  logic [31:0]    reply_tag_hash,
    output logic           known,
    output logic           alive,
    input  logic           reply_done     // REQUIRES: known
);
  localparam int SLOTS = 2 ** LOG;
  logic [SLOTS-1:0] busy, passed, dead, old;
  logic [ROW_BITS-1:0] rows[SLOTS];
  // What a reply is compared with.
  logic [$bits(asker_t)+63:0] mem[SLOTS];
  asker_t asker;
  logic [31:0] row_hash, tag_hash;
  assign {asker, row_hash, tag_hash} = mem[reply_slot];

  assign begin_ok = !busy[begin_slot];
  assign known = busy[reply_slot] && passed[reply_slot] && asker == reply_asker;
  assign alive = known && !dead[reply_slot] && row_hash == reply_row_hash && tag_hash == reply_tag_hash;

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= '0;
      passed <= '0;
      dead <= '0;
      old <= '0;
    end else begin
      for (int i = 0; i < SLOTS; i++) begin
        if (kill_valid && (kill_all || rows[i] == kill_row_hash[ROW_BITS-1:0])) dead[i] <= 1'b1;
        if (tick && passed[i]) begin
          old[i] <= 1'b1;
          if (old[i]) begin
            busy[i] <= 1'b0;
            passed[i] <= 1'b0;
          end
        end
      end
      if (reply_done) begin
        busy[reply_slot] <= 1'b0;
        passed[reply_slot] <= 1'b0;
      end
      if (settle_valid) begin
        busy[settle_slot] <= settle_passed;
        passed[settle_slot] <= settle_passed;
        old[settle_slot] <= 1'b0;
      end
      if (begin_valid && begin_ok) begin
        busy[begin_slot] <= 1'b1;
        passed[begin_slot] <= 1'b0;
        dead[begin_slot] <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (begin_valid && begin_ok) begin
      rows[begin_slot] <= begin_row_hash[ROW_BITS-1:0];
      mem[begin_slot] <= {begin_asker, begin_row_hash, begin_tag_hash};
    end
  end

`ifdef FORMAL
  `include "fill_table_formal.svh"
`endif
endmodule
