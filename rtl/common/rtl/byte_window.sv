// SPDX-License-Identifier: Apache-2.0
//
// Turns a stream of beats into a window of up to 24 bytes, of which the consumer takes 0 to 16 from
// the front in a cycle. A beat has 1 to 8 bytes; all but the last of a packet have 8. When the last
// byte of a packet is taken, the next packet begins in the same cycle. The consumer waits for
// `count` to be large enough, or for `tail`: all that is left of the packet is in the window.
module byte_window (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [63:0]  in_data,
    input  logic [3:0]   in_bytes,
    input  logic         in_last,
    output logic [191:0] view,   // bytes after the packet's end are zero
    output logic [4:0]   count,
    output logic         tail,
    input  logic [4:0]   take    // at most count
);
  logic [4:0] left;
  logic ends;
  logic [191:0] shifted;

  assign left = count - take;
  assign ends = tail && left == 5'd0;
  assign in_ready = ends || (!tail && left <= 5'd16);
  assign shifted = view >> {take, 3'b000};

  always_ff @(posedge clk) begin
    if (rst) begin
      view <= '0;
      count <= '0;
      tail <= 1'b0;
    end else begin
      view <= shifted;
      count <= left;
      if (ends) tail <= 1'b0;
      if (in_valid && in_ready) begin
        view <= shifted | ({128'd0, in_data & wc_pkg::byte_mask(in_bytes)} << {left, 3'b000});
        count <= left + {1'b0, in_bytes};
        tail <= in_last;
      end
    end
  end

`ifdef FORMAL
  `include "byte_window_formal.svh"
`endif
endmodule
