// SPDX-License-Identifier: Apache-2.0
//
// Converts a number, whose class is known, to decimal digits, four bits a cycle: below 10 they are there in the
// next cycle; else it takes 3 cycles below 4096, 8 below 2^32, else 16, then two, and one more for each leading zero of the
// longest number of that class. The first of `count` digits is at the top. `take`, when they are done, moves them on by
// eight. All that is said of them is in registers.
module decimal
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        clear,   // one starts in the next cycle
    input  logic        start,
    input  logic [63:0] value,
    input  logic [2:0]  below,   // 2^32, 4096, 10
    input  logic        take,
    output logic        done,
    output logic [31:0] digits,  // the next eight
    output logic [4:0]  count,
    output logic        is_one,  // count == 1
    output logic        is_last  // count <= 8
);
  logic [63:0] bits;    // in the class's longest number's place, at the top
  logic [79:0] bcd;
  logic [4:0] steps;
  logic busy, aligns, below_4096, below_2_32;
  assign digits = bcd[79:48];

  // The digits of a class are at the top from the beginning: so a bit comes in at one of three places.
  logic [79:0] next;
  always_comb begin
    next = bcd;
    for (int i = 63; i >= 60; i--) begin
      next = doubled(next, bits[i] && !below_2_32);
      next[64] = next[64] || (bits[i] && below_4096);
      next[40] = next[40] || (bits[i] && !below_4096 && below_2_32);
    end
  end

  always_ff @(posedge clk) begin
    if (start) bits <= below[1] ? value << 52 : below[2] ? value << 32 : value;
    else bits <= bits << 4;
    if (start) begin
      {below_2_32, below_4096} <= below[2:1];
      steps <= below[1] ? 5'd3 : below[2] ? 5'd8 : 5'd16;
      count <= below[0] ? 5'd1 : below[1] ? 5'd4 : below[2] ? 5'd10 : 5'd20;
      is_one <= below[0];
      is_last <= below[1];
      bcd <= {below[0] ? value[3:0] : 4'd0, 76'd0};
    end else if (busy) begin
      steps <= steps - 5'd1;
      bcd <= next;
    end else if (aligns) begin
      // A number of this kind has two digits at least.
      if (bcd[79:76] == 4'd0) begin
        count <= count - 5'd1;
        is_last <= count <= 5'd9;
        bcd <= bcd << 4;
      end
    end else if (take) begin
      count <= count - 5'd8;
      is_one <= count == 5'd9;
      is_last <= count <= 5'd16;
      bcd <= bcd << 32;
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 1'b0;
      aligns <= 1'b0;
      done <= 1'b0;
    end else begin
      busy <= start ? !below[0] : busy && steps != 5'd1;
      aligns <= !start && (busy ? steps == 5'd1 : aligns && bcd[79:76] == 4'd0);
      done <= !clear && (start ? below[0] : done || (aligns && bcd[79:76] != 4'd0));
    end
  end
endmodule
