// SPDX-License-Identifier: Apache-2.0
//
// Joins pieces of 0 to 8 bytes to a stream of full beats. Bytes of a piece above its size are
// ignored. The last beat of a packet has 0 to 8 bytes; it has 0 only where the packet's size is a
// multiple of 8 and its last piece was empty.
module byte_packer (
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last
);
  logic [55:0] held;
  logic [2:0] held_bytes;
  logic rest;  // the held bytes are the last beat of a packet
  logic [127:0] joined;
  logic [3:0] total;
  logic emits;

  assign joined = {64'd0, 8'd0, held} |
                  ({64'd0, in_data & wc_pkg::byte_mask(in_bytes)} << {held_bytes, 3'b000});
  assign total = {1'b0, held_bytes} + in_bytes;
  assign emits = total >= 4'd8 || in_last;
  assign in_ready = !rest && (out_ready || !emits);
  assign out_valid = rest || (in_valid && emits);
  assign out_data = rest ? {8'd0, held} : joined[63:0];
  assign out_bytes = rest ? {1'b0, held_bytes} : (total > 4'd8 ? 4'd8 : total);
  assign out_last = rest || (in_last && total <= 4'd8);

  always_ff @(posedge clk) begin
    if (rst) begin
      held <= '0;
      held_bytes <= '0;
      rest <= 1'b0;
    end else if (rest) begin
      if (out_ready) begin
        rest <= 1'b0;
        held <= '0;
        held_bytes <= '0;
      end
    end else if (in_valid && in_ready) begin
      if (total >= 4'd8) begin
        held <= joined[119:64];
        held_bytes <= 3'(total - 4'd8);
        rest <= in_last && total > 4'd8;
      end else if (in_last) begin
        held <= '0;
        held_bytes <= '0;
      end else begin
        held <= joined[55:0];
        held_bytes <= total[2:0];
      end
    end
  end

`ifdef FORMAL
  `include "packer_formal.svh"
`endif
endmodule
