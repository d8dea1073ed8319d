// SPDX-License-Identifier: Apache-2.0
//
// Turns a stream of beats into a window of up to 24 bytes, of which the consumer takes 0 to 15 from
// the front in a cycle. A beat has 1 to 8 bytes; all but the last of a packet have 8. The next packet
// begins in the cycle after the one in which the last byte of a packet is taken. The consumer waits
// for `count` to be large enough, or for `tail`: all that is left
// of the packet is in the window. Up to 24 bytes are shown.
//
// `take` is what the consumer decides late in a cycle. A new beat is put behind the bytes that are
// there before it is known how many of them are taken, and all are moved together: so only the move
// comes after `take`; `in_ready` does not depend on it.
module byte_window #(
    parameter int BITS = 8   // of a byte, with what the writer has marked it with
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               in_valid,
    output logic               in_ready,
    input  logic [8*BITS-1:0]  in_data,
    input  logic [3:0]         in_bytes,
    input  logic               in_last,
    output logic [24*BITS-1:0] view,   // bytes after the packet's end are zero
    output logic [4:0]         count,
    output logic [24:0]        at_least,  // bit n: count >= n
    output logic               tail,
    input  logic [3:0]         take    // at most count
);
  // A byte has a bit more here: it is there.
  localparam int EACH = BITS + 1;
  localparam int WIDE = 32 * EACH;
  function automatic logic [WIDE-1:0] up(logic [WIDE-1:0] bytes, logic [4:0] by);
    up = bytes;
    for (int s = 0; s < 5; s++) if (by[s]) up = up << (EACH << s);
  endfunction
  function automatic logic [WIDE-1:0] down(logic [WIDE-1:0] bytes, logic [3:0] by);
    down = bytes;
    for (int s = 0; s < 4; s++) if (by[s]) down = down >> (EACH << s);
  endfunction

  logic [4:0] left, next;
  logic ends, accepts;
  logic [8*EACH-1:0] beat;
  logic [WIDE-1:0] held;   // 31 bytes
  logic [WIDE-1:0] placed, moved;
  always_comb begin
    for (int i = 0; i < 8; i++) beat[EACH*i+:EACH] = 4'(i) < in_bytes ? {1'b1, in_data[BITS*i+:BITS]} : '0;
    at_least[0] = 1'b1;
    for (int i = 0; i < 24; i++) {at_least[i+1], view[BITS*i+:BITS]} = held[EACH*i+:EACH];
  end
  assign placed = up({{24 * EACH{1'b0}}, beat}, count);
  assign left = count - {1'b0, take};
  assign ends = tail && left == 5'd0;
  assign accepts = in_valid && in_ready;
  assign next = accepts ? left + {1'b0, in_bytes} : left;
  assign in_ready = !tail && !at_least[24];
  assign moved = down(held | (accepts ? placed : '0), take);

  always_ff @(posedge clk) begin
    if (rst) begin
      held <= '0;
      count <= '0;
      tail <= 1'b0;
    end else begin
      held <= moved;
      count <= next;
      if (accepts) tail <= in_last;
      else if (ends) tail <= 1'b0;
    end
  end

`ifdef FORMAL
  `include "byte_window_formal.svh"
`endif
endmodule
