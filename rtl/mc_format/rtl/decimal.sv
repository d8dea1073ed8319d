// SPDX-License-Identifier: Apache-2.0
//
// Converts a number to decimal digits, four bits a cycle: 1 cycle below 16, 3 below 4096, 8 below
// 2^32, else 16; then one cycle for each leading zero of the longest number of that class. `digits`
// holds the first digit at the top.
module decimal
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        start,
    input  logic [63:0] value,
    output logic        done,
    output logic [79:0] digits,
    output logic [4:0]  count
);
  logic [63:0] bits;
  logic [79:0] bcd;
  logic [4:0] steps;
  logic busy, moved, aligned;
  assign done = !busy && aligned;
  assign digits = bcd;

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 1'b0;
      aligned <= 1'b1;
      moved <= 1'b1;
      bcd <= '0;
      count <= 5'd1;
    end else if (start) begin
      if (value < 64'd10) begin
        bcd <= {value[3:0], 76'd0};
        count <= 5'd1;
        busy <= 1'b0;
        aligned <= 1'b1;
      end else begin
        bcd <= '0;
        busy <= 1'b1;
        aligned <= 1'b0;
        moved <= 1'b0;
        if (value[63:12] == '0) begin
          bits <= {value[11:0], 52'd0};
          steps <= 5'd3;
          count <= 5'd4;
        end else if (value[63:32] == '0) begin
          bits <= {value[31:0], 32'd0};
          steps <= 5'd8;
          count <= 5'd10;
        end else begin
          bits <= value;
          steps <= 5'd16;
          count <= 5'd20;
        end
      end
    end else if (busy) begin
      bcd <= doubled(doubled(doubled(doubled(bcd, bits[63]), bits[62]), bits[61]), bits[60]);
      bits <= bits << 4;
      steps <= steps - 5'd1;
      if (steps == 5'd1) busy <= 1'b0;
    end else if (!moved) begin
      // The class's first digit to the top.
      moved <= 1'b1;
      if (count == 5'd4) bcd <= bcd << 64;
      if (count == 5'd10) bcd <= bcd << 40;
    end else if (!aligned) begin
      if (bcd[79:76] == 4'd0) begin
        bcd <= bcd << 4;
        count <= count - 5'd1;
      end else begin
        aligned <= 1'b1;
      end
    end
  end
endmodule
