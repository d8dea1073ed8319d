// SPDX-License-Identifier: Apache-2.0
//
// A FIFO in block memory whose writer decides at the end of a packet whether the reader gets it.
// With `commit` the entries since the last commit, this cycle's included, become readable; with
// `abort` they are forgotten, this cycle's included. A writer that needs no packets ties commit to
// 1. REQUIRES: a packet is never longer than the FIFO, or the writer aborts it: else it waits for
// ever.
//
// Block memory answers late in a cycle, and some readers decide late: a skid buffer stands between. With REG the answer is
// in a register first, a cycle later: for a memory of many blocks, which are far away.
module packet_fifo #(
    parameter int W = 8,
    parameter int LOG = 9,
    parameter bit REG = 1'b0
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [W-1:0] in_data,
    input  logic         commit,
    input  logic         abort,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [W-1:0] out_data
);
  logic [W-1:0] mem[2**LOG];
  logic [LOG:0] wr, done, rd;
  logic [LOG:0] wr_next;
  logic fetch;
  logic full;   // a register: the place of an entry that has been read is free a cycle later
  logic head_valid, head_ready;   // what memory has answered
  logic [W-1:0] head;

  assign in_ready = !full;
  assign wr_next = wr + 1'b1;
  assign fetch = done != rd && (!head_valid || head_ready);

  always_ff @(posedge clk) begin
    if (in_valid && in_ready) mem[wr[LOG-1:0]] <= in_data;
    if (fetch) head <= mem[rd[LOG-1:0]];
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      wr <= '0;
      done <= '0;
      rd <= '0;
      head_valid <= 1'b0;
      full <= 1'b0;
    end else begin
      // Whether the writer writes is known late.
      if (abort) full <= (done ^ rd) == (LOG + 1)'(2 ** LOG);
      else if (in_valid && in_ready) full <= (wr_next ^ rd) == (LOG + 1)'(2 ** LOG);
      else full <= (wr ^ rd) == (LOG + 1)'(2 ** LOG);
      if (abort) begin
        wr <= done;
      end else begin
        if (in_valid && in_ready) wr <= wr_next;
        if (commit) done <= in_valid && in_ready ? wr_next : wr;
      end
      if (fetch) rd <= rd + 1'b1;
      if (fetch) head_valid <= 1'b1;
      else if (head_ready) head_valid <= 1'b0;
    end
  end

  logic next_valid, next_ready;   // what goes into the skid buffer
  logic [W-1:0] next;
  if (REG) begin : g_reg
    assign head_ready = !next_valid || next_ready;
    always_ff @(posedge clk) begin
      if (rst) next_valid <= 1'b0;
      else if (head_ready) next_valid <= head_valid;
    end
    always_ff @(posedge clk) if (head_ready) next <= head;
  end else begin : g_no_reg
    assign head_ready = next_ready;
    assign next_valid = head_valid;
    assign next = head;
  end
  skid_buffer #(.W(W)) skid (
      .clk, .rst, .in_valid(next_valid), .in_ready(next_ready), .in_data(next), .out_valid, .out_ready, .out_data
  );

`ifdef FORMAL
  `include "packet_fifo_formal.svh"
`endif
endmodule
