// SPDX-License-Identifier: Apache-2.0
//
// Writes items, or the first beat of one, to memory, in bursts of up to 8 beats. When memory has
// acknowledged all bursts of a request, `free` names its entry in the scoreboard: only then may
// another operation read the row.
module item_writer #(
    parameter int SLOT_BITS = 15,
    parameter int SIZE_BITS = 8,   // of a word's number in a slot, 3 to 8
    parameter int HAZARDS_LOG = 5,
    parameter int TAG_LOG = 5
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   req_valid,
    output logic                   req_ready,
    input  logic [SLOT_BITS-1:0]   req_slot,
    input  logic [7:0]             req_beats,   // at least 1, at most 2**SIZE_BITS - 1
    input  logic [HAZARDS_LOG-1:0] req_hazard,
    input  logic                   data_valid,
    output logic                   data_ready,
    input  logic [63:0]            data,
    output logic                   aw_valid,
    input  logic                   aw_ready,
    output logic [SLOT_BITS+SIZE_BITS-1:0] aw_addr,
    output logic [3:0]             aw_len,
    output logic [TAG_LOG-1:0]     aw_tag,
    output logic                   w_valid,
    input  logic                   w_ready,
    output logic [63:0]            w_data,
    output logic                   w_last,
    input  logic                   b_valid,
    input  logic [TAG_LOG-1:0]     b_tag,
    output logic                   free_valid,
    output logic [HAZARDS_LOG-1:0] free_id
);
  localparam int TAGS = 2 ** TAG_LOG;
  localparam int HAZARDS = 2 ** HAZARDS_LOG;

  logic [TAGS-1:0] busy;
  logic [HAZARDS_LOG-1:0] owner[TAGS];
  // Of an entry of the scoreboard: bursts that have been begun, and whether the last one is among
  // them; those that have an answer, and one more, if there is one. Each has one writer, and so is in memory.
  logic [6:0] begun[HAZARDS];
  logic [5:0] answered[HAZARDS];
  logic [HAZARDS-1:0] touched;
  logic [TAG_LOG-1:0] tag;
  logic [7:0] written;           // beats of the request in earlier bursts
  logic [7:0] at, rest;          // of the request, where the next burst begins, and beats from there on
  logic in_burst, burst_ends, burst_begins;
  logic next_begun;              // the burst behind this one has begun
  logic [3:0] burst_left;
  logic last_burst;              // of the request

  // A request's next burst begins while the last beat of the one before is offered, or later; whether that beat is taken, which is
  // known late, does not matter.
  assign at = in_burst ? written + 8'd8 : written;
  assign rest = req_beats - at;
  assign burst_ends = w_valid && w_ready && w_last;
  assign aw_valid = req_valid && (!in_burst || (w_last && !last_burst && !next_begun)) && !busy[tag];
  assign aw_addr = {req_slot, at[SIZE_BITS-1:0]};
  assign aw_len = rest > 8'd8 ? 4'd8 : rest[3:0];
  assign aw_tag = tag;
  assign w_valid = in_burst && data_valid;
  assign data_ready = in_burst && w_ready;
  assign w_data = data;
  assign w_last = burst_left == 4'd1;
  assign req_ready = burst_ends && last_burst;

  // An answer is counted a cycle after it came.
  logic came;
  logic [HAZARDS_LOG-1:0] b_owner;
  logic starts, same, complete;
  logic [5:0] begun_count, answers;
  logic [6:0] begun_before;
  always_ff @(posedge clk) b_owner <= owner[b_tag];
  assign starts = aw_valid && aw_ready;
  assign burst_begins = in_burst ? burst_ends && !last_burst && (starts || next_begun) : starts;
  assign same = starts && came && b_owner == req_hazard;
  assign {complete, begun_count} = begun[b_owner];
  assign begun_before = begun[req_hazard];
  assign answers = touched[b_owner] ? answered[b_owner] : 6'd1;
  assign free_valid = came && answers == begun_count && complete && !same;
  assign free_id = b_owner;

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= '0;
      tag <= '0;
      written <= '0;
      in_burst <= 1'b0;
      next_begun <= 1'b0;
      touched <= '0;
      came <= 1'b0;
    end else begin
      if (starts) begin
        busy[tag] <= 1'b1;
        tag <= tag + 1'b1;
      end
      came <= b_valid;
      if (b_valid) busy[b_tag] <= 1'b0;
      if (came) touched[b_owner] <= !free_valid;
      in_burst <= burst_begins || (in_burst && !burst_ends);
      next_begun <= in_burst && !burst_ends && (starts || next_begun);
      if (burst_ends) written <= last_burst ? 8'd0 : at;
    end
  end
  always_ff @(posedge clk) begin
    if (starts) begin
      owner[tag] <= req_hazard;
      begun[req_hazard] <= {rest <= 8'd8, at == 8'd0 ? 6'd1 : begun_before[5:0] + 6'd1};
    end
    if (burst_begins) begin
      burst_left <= aw_len;
      last_burst <= rest <= 8'd8;
    end else if (w_valid && w_ready) begin
      burst_left <= burst_left - 4'd1;
    end
  end
  always_ff @(posedge clk) if (came) answered[b_owner] <= answers + 6'd1;

`ifdef FORMAL
  `include "item_writer_formal.svh"
`endif
endmodule
