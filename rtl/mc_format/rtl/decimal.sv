// SPDX-License-Identifier: Apache-2.0
//
// Converts a number to decimal digits, four bits a cycle: after a cycle in which its class is found,
// 0 cycles below 10, 3 below 4096, 8 below 2^32, else 16; then one cycle for each leading zero of the
// longest number of that class. The first
// of `count` digits is at the top. `take`, when they are done, moves them on by eight.
module decimal
  import wc_pkg::*;
#(
    parameter bit WIDE = 1'b1   // else below 4096
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        start,
    input  logic [63:0] value,
    input  logic        take,
    output logic        done,
    output logic [31:0] digits,  // the next eight
    output logic [4:0]  count
);
  localparam int DIGITS = WIDE ? 20 : 4;
  localparam int BITS = WIDE ? 64 : 12;
  localparam int TOP = 4 * DIGITS;
  logic [BITS-1:0] bits;
  logic [TOP-1:0] bcd;
  logic [4:0] steps;
  logic busy, below_4096, below_2_32;  // the class
  logic fresh;  // `bits` is the number
  logic begun;  // digits have been taken: zeros count
  logic below_10, is_below_4096, is_below_2_32;
  logic [63:0] whole;
  assign whole = {{64 - BITS{1'b0}}, bits};
  assign below_10 = whole[63:4] == '0 && (!bits[3] || bits[2:1] == 2'd0);
  assign is_below_4096 = whole[63:12] == '0;
  assign is_below_2_32 = whole[63:32] == '0;
  assign done = !fresh && !busy && (bcd[TOP-1-:4] != 4'd0 || count == 5'd1 || begun);
  logic [TOP+15:0] shown;
  assign shown = {bcd, 16'd0};
  assign digits = shown[TOP+15-:32];

  // The digits of a class are at the top from the beginning: so a bit comes in at one of three places.
  logic [3:0] part;
  logic [TOP-1:0] next;
  logic [79:0] twice;
  assign part = !WIDE || below_4096 ? bits[11:8] : below_2_32 ? bits[BITS/2-1-:4] : bits[BITS-1-:4];
  always_comb begin
    next = bcd;
    twice = '0;
    for (int i = 3; i >= 0; i--) begin
      twice = doubled({{80 - TOP{1'b0}}, next}, 1'b0);
      next = twice[TOP-1:0];
      next[TOP-16] = next[TOP-16] || (part[i] && (!WIDE || below_4096));
      if (WIDE) begin
        next[TOP/2] = next[TOP/2] || (part[i] && !below_4096 && below_2_32);
        next[0] = part[i] && !below_2_32;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (start) bits <= value[BITS-1:0];
    else if (!fresh) bits <= bits << 4;
    if (fresh) begin
      below_4096 <= is_below_4096;
      below_2_32 <= is_below_2_32;
      steps <= is_below_4096 ? 5'd3 : is_below_2_32 ? 5'd8 : 5'd16;
      count <= below_10 ? 5'd1 : is_below_4096 ? 5'd4 : is_below_2_32 ? 5'd10 : 5'd20;
      bcd <= '0;
      if (below_10) bcd[TOP-1-:4] <= bits[3:0];
    end else if (busy) begin
      steps <= steps - 5'd1;
      bcd <= next;
    end else if (!done) begin
      count <= count - 5'd1;
      bcd <= bcd << 4;
    end else if (take) begin
      count <= count - 5'd8;
      bcd <= TOP'({bcd, 32'd0});
    end
  end
  always_ff @(posedge clk) begin
    fresh <= start && !rst;
    if (rst) begin
      busy <= 1'b0;
      begun <= 1'b1;
    end else if (fresh) begin
      busy <= !below_10;
      begun <= 1'b0;
    end else if (busy) begin
      if (steps == 5'd1) busy <= 1'b0;
    end else if (take) begin
      begun <= 1'b1;
    end
  end
endmodule
