// SPDX-License-Identifier: Apache-2.0
//
// Hashes the key of each operation, a beat a cycle, and passes the key on. Two CRCs of 32 bits with
// different polynomials give row and tag: exclusive-or trees of little depth, no multiplier. With
// HASH_ONE_CRC both are of one: the row of its lower half, the tag of its upper one. The streams of
// operations and keys leave in the order in which they came.
module key_hash
  import wc_pkg::*;
#(
    parameter int HASH = HASH_TWO_CRCS
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        op_valid,
    output logic        op_ready,
    input  meta_t       op,
    input  logic        key_valid,
    output logic        key_ready,
    input  logic [63:0] key_data,
    output logic        out_valid,
    input  logic        out_ready,
    output meta_t       out_op,
    output logic [31:0] out_row_hash,
    output logic [31:0] out_tag_hash,
    output logic        out_key_valid,
    input  logic        out_key_ready,
    output logic [63:0] out_key_data
);
  if (HASH != HASH_TWO_CRCS && HASH != HASH_ONE_CRC) begin : g_hash_wrong $error("HASH is HASH_TWO_CRCS or HASH_ONE_CRC"); end
  localparam logic [31:0] POLY_ROW = 32'h82f6_3b78;  // CRC-32C, reflected
  localparam logic [31:0] POLY_TAG = 32'heb31_d82e;  // CRC-32K, reflected

  // One step over 64 bits, as a shift register would take it.
  function automatic logic [31:0] crc(logic [31:0] state, logic [63:0] data, logic [31:0] poly);
    logic [31:0] c;
    c = state;
    for (int i = 0; i < 64; i++) c = (c >> 1) ^ ((c[0] ^ data[i]) ? poly : 32'd0);
    crc = c;
  endfunction
  // The step is linear, and takes the state together with the first four bytes of data: the parities of
  // these bits of {data[63:32], data[31:0] ^ state} are the bits of the result. Written out, so that
  // synthesis makes trees of exclusive-or and not a chain of 64.
  typedef logic [31:0][63:0] parities_t;
  function automatic parities_t parities(logic [31:0] poly);
    for (int i = 0; i < 64; i++) begin
      logic [31:0] column;
      column = crc(32'd0, 64'd1 << i, poly);
      for (int j = 0; j < 32; j++) parities[j][i] = column[j];
    end
  endfunction
  localparam parities_t ROW_PARITIES = parities(POLY_ROW);
  localparam parities_t TAG_PARITIES = parities(POLY_TAG);

  logic [31:0] row_hash, tag_hash, row_next, tag_next;
  logic [5:0] beat;
  logic last_beat, no_key, step;

  assign no_key = op.kbeats == 6'd0;
  // Known with the beat's number, but of the first one.
  logic later, later_last;
  assign last_beat = later ? later_last : op.kbeats == 6'd1;
  // The length goes in with the first beat, so that keys that differ in trailing zeros differ.
  logic [31:0] start;
  assign start = {24'hffffff, ~op.klen};
  logic [63:0] row_in, tag_in;
  assign row_in = key_data ^ {32'd0, !later ? start : row_hash};
  assign tag_in = key_data ^ {32'd0, !later ? start : tag_hash};
  for (genvar j = 0; j < 32; j++) begin : g_bit
    assign row_next[j] = ^(row_in & ROW_PARITIES[j]);
    assign tag_next[j] = ^(tag_in & TAG_PARITIES[j]);
  end

  assign out_key_data = key_data;
  assign out_valid = op_valid && (no_key || (last_beat && key_valid && out_key_ready));
  assign op_ready = out_valid && out_ready;
  // The last beat goes on together with its operation.
  assign step = op_valid && !no_key && key_valid && out_key_ready && (!last_beat || out_ready);
  assign key_ready = step;
  assign out_key_valid = op_valid && !no_key && key_valid && (!last_beat || out_ready);
  assign out_op = op;
  assign out_row_hash = row_next;
  assign out_tag_hash = HASH == HASH_ONE_CRC ? {row_next[15:0], row_next[31:16]} : tag_next;

  always_ff @(posedge clk) begin
    if (rst) begin
      beat <= '0;
      later <= 1'b0;
    end else if (step) begin
      beat <= last_beat ? 6'd0 : beat + 6'd1;
      later <= !last_beat;
      later_last <= beat + 6'd2 == op.kbeats;
      row_hash <= row_next;
      tag_hash <= tag_next;
    end
  end
endmodule
