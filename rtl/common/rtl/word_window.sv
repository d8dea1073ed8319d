// SPDX-License-Identifier: Apache-2.0
//
// Turns a stream of beats of one or two words into a window of up to four words, of which the
// consumer sees the first two and takes none, one or two in a cycle.
module word_window (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [127:0] in_data,
    input  logic         in_two,   // the beat's second word counts
    output logic [127:0] view,
    output logic         one,      // word at least is in the window
    output logic         two,
    input  logic [1:0]   take      // at most 2, and at most count
);
  logic [255:0] held, joined;
  logic [2:0] count, most, left;   // words in the window, 0 to 4
  logic accepts, room;
  assign view = held[127:0];
  // Without `take`, so that what the consumer decides does not reach back to the memory; and a beat
  // has its place before it is known how many words are taken.
  assign in_ready = room;
  assign accepts = in_valid && in_ready;
  assign most = !accepts ? count : count + (in_two ? 3'd2 : 3'd1);
  assign left = most - {1'b0, take};
  assign joined = held | ({128'd0, accepts && in_two ? in_data[127:64] : 64'd0, accepts ? in_data[63:0] : 64'd0} <<
                          {count[1:0], 6'd0});

  always_ff @(posedge clk) begin
    if (rst) begin
      held <= '0;
      count <= '0;
      one <= 1'b0;
      two <= 1'b0;
      room <= 1'b1;
    end else begin
      held <= joined >> {take, 6'd0};
      count <= left;
      // Of `left`, with `take` as late as can be.
      one <= take[1] ? most > 3'd2 : take[0] ? most > 3'd1 : most != 3'd0;
      two <= take[1] ? most > 3'd3 : take[0] ? most > 3'd2 : most > 3'd1;
      room <= take[1] ? most <= 3'd4 : take[0] ? most <= 3'd3 : most <= 3'd2;
    end
  end

`ifdef FORMAL
  `include "word_window_formal.svh"
`endif
endmodule
