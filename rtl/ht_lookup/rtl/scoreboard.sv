// SPDX-License-Identifier: Apache-2.0
//
// Rows that an unfinished operation may write to. An operation on such a row waits; so of the
// operations on a row that have been let through at most one may write, and none is behind it. A
// writer gets an entry, which is free again when it has finished.
module scoreboard #(
    parameter int ROW_BITS = 11,
    parameter int LOG = 5
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [ROW_BITS-1:0] row,
    input  logic                keyed,    // an operation without a key meets no hazard
    input  logic                writer,
    output logic                hazard,
    input  logic                take,     // the operation goes on. REQUIRES: !hazard
    output logic [LOG-1:0]      id,       // its entry, if it is a writer
    input  logic                free_a_valid,
    input  logic [LOG-1:0]      free_a_id,
    input  logic                free_b_valid,
    input  logic [LOG-1:0]      free_b_id
);
  localparam int ENTRIES = 2 ** LOG;
  logic [ENTRIES-1:0] busy;
  logic [ROW_BITS-1:0] rows[ENTRIES];

  always_comb begin
    hazard = 1'b0;
    for (int i = 0; i < ENTRIES; i++) if (busy[i] && rows[i] == row) hazard = 1'b1;
    if (!keyed) hazard = 1'b0;
    if (writer && busy[id]) hazard = 1'b1;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= '0;
      id <= '0;
    end else begin
      if (free_a_valid) busy[free_a_id] <= 1'b0;
      if (free_b_valid) busy[free_b_id] <= 1'b0;
      if (take && writer) begin
        busy[id] <= 1'b1;
        id <= id + 1'b1;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (take && writer) rows[id] <= row;
  end

`ifdef FORMAL
  `include "scoreboard_formal.svh"
`endif
endmodule
