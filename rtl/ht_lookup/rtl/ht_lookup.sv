// SPDX-License-Identifier: Apache-2.0
//
// Looks operations up in the index (ht_index), one in two cycles: in the first the scoreboard says
// whether it may go on, in the second it does. REQUIRES: an operation that is offered stays offered.
//
// Hazards: an operation waits while an operation before it that may write to its row has not
// finished (`free_a`, `free_b`), unless it can follow that one (scoreboard). Readers of a row need not finish before a
// writer starts, since operations take effect in order (key_check).
//
// Operations without a key pass through in order.
module ht_lookup
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,
    parameter int SIZE_BITS = 8,   // of an item's size in beats
    parameter int HAZARDS_LOG = 5,
    parameter int FOLLOW_MAX = 32  // words of an item that others may follow
) (
    input  logic                clk,
    input  logic                rst,
    output logic                ready,  // the index has been cleared after reset
    input  logic                op_valid,
    output logic                op_ready,
    input  meta_t               op,
    input  logic [31:0]         row_hash,
    input  logic [31:0]         tag_hash,
    // Operations with what has been found.
    output logic                out_valid,
    input  logic                out_ready,
    output meta_t               out_op,
    output logic [ROW_BITS-1:0] out_row,
    output logic [TAG_BITS-1:0] out_tag,
    output logic                out_found,   // a way has the tag
    output logic                out_reads,   // its item is read
    output logic [$clog2(WAYS)-1:0] out_way,     // it, or the one to replace
    output logic                out_half,    // of the slot that holds the item
    output logic [SIZE_BITS-1:0] out_beats,   // of the item
    output logic [HAZARDS_LOG-1:0] out_hazard,  // of a writer
    // An item to read from memory; in the order of the operations.
    output logic                read_valid,
    input  logic                read_ready,
    output logic [ROW_BITS+$clog2(WAYS):0] read_slot,   // {row, way, half}
    output logic [SIZE_BITS-1:0] read_beats,
    output logic                read_follows,   // it is there when this writer, by its number, has ended
    output logic [HAZARDS_LOG+1:0] read_from,
    // Changes, from key_check.
    input  logic                update_valid,
    input  logic [ROW_BITS-1:0] update_row,
    input  logic [$clog2(WAYS)-1:0] update_way,
    input  logic                update_live,
    input  logic [TAG_BITS-1:0] update_tag,
    input  logic                update_half,
    input  logic [SIZE_BITS-1:0] update_beats,
    input  logic                touch_valid,  // an access, for the pseudo-LRU
    input  logic [ROW_BITS-1:0] touch_row,
    input  logic [$clog2(WAYS)-1:0] touch_way,
    input  logic                free_a_valid,  // a writer has finished
    input  logic [HAZARDS_LOG-1:0] free_a_id,
    input  logic                free_b_valid,
    input  logic [HAZARDS_LOG-1:0] free_b_id,
    output logic                stalled       // by a hazard, for the counters
);
  logic [ROW_BITS-1:0] row;
  assign row = row_hash[ROW_BITS-1:0];
  logic keyed, writer, blind, in_place;
  assign keyed = has_key(op.op);
  assign writer = is_write(op.op, op.touch);
  // A plain set does not read what it replaces.
  assign blind = op.op == OP_SET && !op.cas_cmp;
  assign in_place = op.op == OP_TOUCH || op.op == OP_GET;
  // An operation is here for a cycle before it goes.
  logic [9:0] words;
  always_ff @(posedge clk) words <= 10'(HEADER_BEATS) + {4'd0, op.kbeats} + {1'b0, op.vbeats};
  logic take, index_ready, conflict, full, follows;
  logic [HAZARDS_LOG+1:0] number, from;
  scoreboard #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .LOG(HAZARDS_LOG)) hazards (
      .clk, .rst, .valid(op_valid), .row, .tag(tag_hash[TAG_BITS-1:0]), .keyed, .writer, .stores(blind && words <= 10'(FOLLOW_MAX)),
      .in_place(writer && in_place), .conflict, .full, .follows, .from, .take, .number, .free_a_valid, .free_a_id,
      .free_b_valid, .free_b_id
  );
  // What is found out in the first cycle holds in the second: only the operation itself adds an entry
  // to the scoreboard or an operation to the index's first stage.
  logic goes, hazard;
  assign hazard = full || (conflict && !follows);
  always_ff @(posedge clk) goes <= !rst && op_valid && ready && !hazard && index_ready && !take;
  assign op_ready = goes;
  assign take = op_valid && op_ready;
  assign stalled = op_valid && ready && hazard;

  ht_index #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .WAYS(WAYS), .SIZE_BITS(SIZE_BITS), .ID_BITS(HAZARDS_LOG), .W($bits(meta_t))) index (
      .clk, .rst, .ready, .in_valid(take), .in_ready(index_ready), .in_row(row), .in_tag(tag_hash[TAG_BITS-1:0]),
      .in_keyed(keyed), .in_blind(blind), .in_id(number[HAZARDS_LOG-1:0]), .in_beats(words[SIZE_BITS-1:0]), .in_follows(follows),
      .in_from(from), .in_data(op), .out_valid, .out_ready, .out_row, .out_tag,
      .out_found, .out_reads, .out_way, .out_half, .out_beats, .out_id(out_hazard), .out_data(out_op), .read_valid, .read_ready,
      .read_slot, .read_beats, .read_follows, .read_from, .update_valid, .update_row, .update_way, .update_live, .update_tag, .update_half,
      .update_beats, .touch_valid, .touch_row, .touch_way
  );
endmodule
