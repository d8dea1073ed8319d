// SPDX-License-Identifier: Apache-2.0
//
// Reads items from memory. An item is divided into bursts of up to 4 beats of two words, of which up
// to 64 are under way. Memory may answer them in any order and interleaved, beats of one burst in
// order; the items leave in the order of the requests. The reorder buffer always has room for what
// has been asked for. The last beat of an item has one word where the item's number of words is odd.
module item_reader #(
    parameter int SLOT_BITS = 15,
    parameter int SIZE_BITS = 8,   // of a word's number in a slot, 3 to 8
    parameter int TAG_LOG = 6
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic                 req_valid,
    output logic                 req_ready,
    input  logic [SLOT_BITS-1:0] req_slot,
    input  logic [7:0]           req_words,  // at least 1, at most 2**SIZE_BITS - 1
    output logic                 ar_valid,
    input  logic                 ar_ready,
    output logic [SLOT_BITS+SIZE_BITS-2:0] ar_addr,    // in beats
    output logic [2:0]           ar_len,     // beats
    output logic [TAG_LOG-1:0]   ar_tag,
    input  logic                 r_valid,
    input  logic [TAG_LOG-1:0]   r_tag,
    input  logic [127:0]         r_data,
    output logic                 out_valid,
    input  logic                 out_ready,
    output logic [127:0]         out_data,
    output logic                 out_two     // the beat has two words
);
  localparam int TAGS = 2 ** TAG_LOG;

  logic [TAG_LOG:0] cleared;  // entries of the reorder buffer, since the reset
  logic clears;

  // --- Bursts.
  logic [7:0] offset;  // in words
  logic [7:0] rest;
  logic [3:0] words;   // of the burst
  logic [TAG_LOG:0] issued, drained;  // tags are used round robin
  logic room;
  assign rest = req_words - offset;
  assign words = rest > 8'd8 ? 4'd8 : rest[3:0];
  assign room = (issued ^ drained) != (TAG_LOG + 1)'(TAGS) && !clears;
  assign ar_valid = req_valid && room;
  assign ar_addr = {req_slot, offset[SIZE_BITS-1:1]};
  assign ar_len = words[3:1] + {2'd0, words[0]};
  assign ar_tag = issued[TAG_LOG-1:0];
  assign req_ready = ar_valid && ar_ready && rest <= 8'd8;

  // --- The reorder buffer.
  logic [127:0] mem[TAGS*4];
  // Beats that have come, with the lap in which they came: an entry of an earlier lap says 0. All are
  // of an earlier one after a reset.
  logic [3:0] filled[TAGS];
  logic [3:0] at_head, at_r;
  logic [2:0] head_filled, r_filled;
  logic r_lap;
  logic [3:0] length[TAGS];   // words
  logic [1:0] beat;
  logic fetch;
  logic [TAG_LOG-1:0] head;
  assign head = drained[TAG_LOG-1:0];
  assign clears = !cleared[TAG_LOG];
  assign at_head = filled[head];
  assign at_r = filled[r_tag];
  assign r_lap = drained[TAG_LOG] ^ (r_tag < head);
  assign head_filled = at_head[3] == drained[TAG_LOG] ? at_head[2:0] : 3'd0;
  assign r_filled = at_r[3] == r_lap ? at_r[2:0] : 3'd0;
  assign fetch = issued != drained && head_filled > {1'b0, beat} && (!out_valid || out_ready);

  always_ff @(posedge clk) begin
    if (r_valid) mem[{r_tag, r_filled[1:0]}] <= r_data;
    if (clears || r_valid)
      filled[clears ? cleared[TAG_LOG-1:0] : r_tag] <= clears ? {1'b1, 3'd0} : {r_lap, r_filled + 3'd1};
    if (fetch) begin
      out_data <= mem[{head, beat}];
      out_two <= {beat, 1'b1} < length[head][2:0] || length[head][3];
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      offset <= '0;
      issued <= '0;
      drained <= '0;
      beat <= '0;
      out_valid <= 1'b0;
      cleared <= '0;
    end else begin
      if (clears) cleared <= cleared + 1'b1;
      if (ar_valid && ar_ready) begin
        offset <= req_ready ? 8'd0 : offset + 8'd8;
        issued <= issued + 1'b1;
        length[ar_tag] <= words;
      end
      if (fetch) begin
        out_valid <= 1'b1;
        beat <= beat + 2'd1;
        if ({1'b0, beat, 1'b0} + 4'd2 >= length[head]) begin
          beat <= '0;
          drained <= drained + 1'b1;
        end
      end else if (out_ready) begin
        out_valid <= 1'b0;
      end
    end
  end

`ifdef FORMAL
  `include "item_reader_formal.svh"
`endif
endmodule
