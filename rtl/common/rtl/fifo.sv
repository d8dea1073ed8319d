// SPDX-License-Identifier: Apache-2.0
//
// A FIFO of 2**LOG entries in distributed memory; an entry can be read in the cycle after it was
// written. `in_ready` is a register: the place of an entry that has been read is free a cycle later.
module fifo #(
    parameter int W = 8,
    parameter int LOG = 4
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [W-1:0] in_data,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [W-1:0] out_data
);
  logic [W-1:0] mem[2**LOG];
  logic [LOG:0] wr, rd, wr_next;
  logic full, writes;

  assign in_ready = !full;
  assign writes = in_valid && in_ready;
  assign wr_next = wr + 1'b1;
  assign out_valid = wr != rd;
  assign out_data = mem[rd[LOG-1:0]];

  always_ff @(posedge clk) begin
    if (writes) mem[wr[LOG-1:0]] <= in_data;
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      wr <= '0;
      rd <= '0;
      full <= 1'b0;
    end else begin
      if (writes) wr <= wr_next;
      full <= ((writes ? wr_next : wr) ^ rd) == (LOG + 1)'(2 ** LOG);
      if (out_valid && out_ready) rd <= rd + 1'b1;
    end
  end

`ifdef FORMAL
  `include "fifo_formal.svh"
`endif
endmodule
