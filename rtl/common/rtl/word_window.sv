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
    output logic [2:0]   count,    // words in the window, 0 to 4
    input  logic [1:0]   take      // at most 2, and at most count
);
  logic [255:0] held, joined;
  logic [2:0] left;
  logic accepts;
  assign view = held[127:0];
  // Without `take`, so that what the consumer decides does not reach back to the memory; and a beat
  // has its place before it is known how many words are taken.
  assign in_ready = count <= 3'd2;
  assign accepts = in_valid && in_ready;
  assign left = count - {1'b0, take};
  assign joined = held | ({128'd0, accepts && in_two ? in_data[127:64] : 64'd0, accepts ? in_data[63:0] : 64'd0} <<
                          {count[1:0], 6'd0});

  always_ff @(posedge clk) begin
    if (rst) begin
      held <= '0;
      count <= '0;
    end else begin
      held <= joined >> {take, 6'd0};
      count <= !accepts ? left : left + (in_two ? 3'd2 : 3'd1);
    end
  end

`ifdef FORMAL
  `include "word_window_formal.svh"
`endif
endmodule
