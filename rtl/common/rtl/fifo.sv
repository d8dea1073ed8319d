// SPDX-License-Identifier: Apache-2.0
//
// A FIFO of 2**LOG entries in distributed memory; an entry can be read in the cycle after it was
// written. `in_ready` is a register: the place of an entry that has been read is free a cycle later.
// With HEAD the entry at the front is in a register, a place more and a cycle later, so the memory's
// answer is not in front of what the reader decides.
// With SPARE the writer may be late: an entry comes SPARE cycles after a cycle with `in_ready`, whatever
// `in_ready` is then, and has a place. REQUIRES: no entry comes else.
module fifo #(
    parameter int W = 8,
    parameter int LOG = 4,
    parameter bit HEAD = 1'b0,
    parameter int SPARE = 0
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
  (* ram_style = "distributed" *) logic [W-1:0] mem[2**LOG];
  logic [LOG:0] wr, rd, wr_next;
  logic full, writes, reads, waits;

  assign in_ready = !full;
  assign writes = in_valid && (in_ready || SPARE != 0);
  assign wr_next = wr + 1'b1;
  assign waits = wr != rd;
  if (HEAD) begin : g_head
    logic head_valid;
    logic [W-1:0] head;
    assign reads = waits && (!head_valid || out_ready);
    assign out_valid = head_valid;
    assign out_data = head;
    always_ff @(posedge clk) begin
      if (rst) head_valid <= 1'b0;
      else if (!head_valid || out_ready) head_valid <= waits;
    end
    always_ff @(posedge clk) if (!head_valid || out_ready) head <= mem[rd[LOG-1:0]];
  end else begin : g_no_head
    assign reads = waits && out_ready;
    assign out_valid = waits;
    assign out_data = mem[rd[LOG-1:0]];
  end

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
      // Whether the writer writes is known late.
      if (SPARE != 0) full <= writes ? wr_next - rd >= (LOG + 1)'(2 ** LOG - SPARE) : wr - rd >= (LOG + 1)'(2 ** LOG - SPARE);
      else full <= writes ? (wr_next ^ rd) == (LOG + 1)'(2 ** LOG) : (wr ^ rd) == (LOG + 1)'(2 ** LOG);
      if (reads) rd <= rd + 1'b1;
    end
  end

`ifdef FORMAL
  `include "fifo_formal.svh"
`endif
endmodule
