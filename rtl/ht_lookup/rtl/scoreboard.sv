// SPDX-License-Identifier: Apache-2.0
//
// Rows that an unfinished operation may write to. A writer gets an entry, which is free again when it has
// finished. An operation on a row that has an entry waits, but for one case: the newest writer of the row stores an
// item whatever it finds (`stores`), of the operation's own tag. Then it may follow that writer, of which all is
// known: where its item will be, and its words before memory has them. A writer that follows writes to the other half
// of the slot, so the writer before the one that it follows has to have finished.
//
// So of the operations on a row that have been let through at most two write and have not finished, and none is behind
// them but those that follow the second one.
module scoreboard #(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int LOG = 5
) (
    input  logic                clk,
    input  logic                rst,
    // REQUIRES: what is offered stays offered until it is taken.
    input  logic                valid,
    input  logic [ROW_BITS-1:0] row,
    input  logic [TAG_BITS-1:0] tag,
    input  logic                keyed,    // an operation without a key meets no hazard
    input  logic                writer,
    input  logic                stores,   // a writer that others may follow; when it is taken
    input  logic                in_place, // it may change an item where it is, and so follows nobody
    output logic                conflict, // its row has an entry
    output logic                full,     // it needs an entry, and there is none
    output logic                follows,  // it may go on in spite of a conflict, behind the writer `from`
    output logic [LOG+1:0]      from,
    input  logic                take,     // the operation goes on. REQUIRES: !full, and !conflict or follows
    output logic [LOG+1:0]      number,   // of writers so far: the next one's; its lower bits are its entry
    input  logic                free_a_valid,
    input  logic [LOG-1:0]      free_a_id,
    input  logic                free_b_valid,
    input  logic [LOG-1:0]      free_b_id
);
  localparam int ENTRIES = 2 ** LOG;
  logic [ENTRIES-1:0] busy;
  logic [ENTRIES-1:0] newest;   // of its row
  logic [ROW_BITS-1:0] rows[ENTRIES];
  logic [LOG-1:0] id;
  assign id = number[LOG-1:0];

  logic met;                    // the newest entry of its row is busy
  logic [LOG-1:0] met_id;
  always_comb begin
    conflict = 1'b0;
    met = 1'b0;
    met_id = '0;
    for (int i = 0; i < ENTRIES; i++) begin
      if (busy[i] && rows[i] == row) begin
        conflict = 1'b1;
        if (newest[i]) begin
          met = 1'b1;
          met_id |= LOG'(i);
        end
      end
    end
    if (!keyed) conflict = 1'b0;
    full = writer && busy[id];
  end

  // A writer that has been met is looked up in the next cycle, and judged in the one after. Only the operation itself adds an entry, so
  // what is found stays right; that an entry is free by then does not matter, since no other writer has got it.
  (* ram_style = "distributed" *) logic [TAG_BITS+LOG+3:0] entries[ENTRIES];
  logic asks, knows;
  logic [LOG-1:0] asked;
  logic known_stores, known_follows;
  logic [TAG_BITS-1:0] known_tag;
  logic [LOG-1:0] known_ahead;  // whom it follows
  logic [LOG+1:0] known;        // its number
  always_ff @(posedge clk) begin
    asked <= met_id;
    known[LOG-1:0] <= asked;
    {known_stores, known_tag, known[LOG+1:LOG], known_follows, known_ahead} <= entries[asked];
    if (!follows) from <= known;
    if (take && writer) entries[id] <= {stores, tag, number[LOG+1:LOG], follows, from[LOG-1:0]};
  end
  always_ff @(posedge clk) begin
    if (rst || take || !valid) begin
      asks <= 1'b0;
      knows <= 1'b0;
      follows <= 1'b0;
    end else begin
      asks <= keyed && met && !in_place;
      knows <= asks;
      if (knows && known_stores && known_tag == tag && !(writer && known_follows && busy[known_ahead])) follows <= 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= '0;
      number <= '0;
    end else begin
      if (free_a_valid) busy[free_a_id] <= 1'b0;
      if (free_b_valid) busy[free_b_id] <= 1'b0;
      if (take && writer) begin
        busy[id] <= 1'b1;
        number <= number + 1'b1;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (take && writer) begin
      rows[id] <= row;
      if (follows) newest[from[LOG-1:0]] <= 1'b0;
      newest[id] <= 1'b1;
    end
  end

`ifdef FORMAL
  `include "scoreboard_formal.svh"
`endif
endmodule
