// SPDX-License-Identifier: Apache-2.0
//
// Pieces of a reply, of up to 16 bytes, or a number's digits, to the reply's beats. Bytes of digits, and the joining
// of pieces, are a cycle each.
// REQUIRES: bytes above a piece's size are zero.
module piece_writer
  import wc_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic         in_number,  // `in_data` is a number_t, and has the size that follows from it
    input  logic [127:0] in_data,
    input  logic [4:0]   in_bytes,
    input  logic         in_last,    // of its datagram
    output logic         out_valid,
    input  logic         out_ready,
    output logic [63:0]  out_data,
    output logic [3:0]   out_bytes,
    output logic         out_last
);
  logic part_valid, part_ready, part_last, part_number;
  logic [127:0] part;
  logic [4:0] part_bytes;
  skid_buffer #(.W(135)) chosen (
      .clk, .rst, .in_valid, .in_ready, .in_data({in_number, in_last, in_bytes, in_data}),
      .out_valid(part_valid), .out_ready(part_ready), .out_data({part_number, part_last, part_bytes, part})
  );
  number_t part_digits;
  logic [79:0] number_text;  // at most eight digits, so ten bytes
  logic [3:0] number_bytes;
  logic [127:0] whole;
  logic [4:0] whole_bytes;
  assign part_digits = part[$bits(number_t)-1:0];
  assign number_bytes = !part_digits.all ? 4'd8 : part_digits.count + (part_digits.blank_behind ? 4'd1 : 4'd2);
  always_comb begin
    number_text = '0;
    for (int i = 0; i < 10; i++) begin
      if (i < 8 && (!part_digits.all || 4'(i) < part_digits.count)) number_text[8*i+:8] = {4'h3, part_digits.digits[4*(7-(i&7))+:4]};
      else if (part_digits.all && part_digits.count == 4'(i)) number_text[8*i+:8] = part_digits.blank_behind ? 8'h20 : 8'h0d;
      else if (part_digits.all && part_digits.count == 4'(i - 1) && !part_digits.blank_behind) number_text[8*i+:8] = 8'h0a;
    end
    whole = part;
    whole_bytes = part_bytes;
    if (part_number) begin
      whole = part_digits.with_flag ? {64'd0, number_text[47:0], 8'h20, 4'h3, part_digits.flag} : {48'd0, number_text};
      whole_bytes = {1'b0, number_bytes} + (part_digits.with_flag ? 5'd2 : 5'd0);
    end
  end
  logic joins, join_ready, join_last;
  logic [127:0] join_piece;
  logic [4:0] join_bytes;
  skid_buffer #(.W(134)) composed (
      .clk, .rst, .in_valid(part_valid), .in_ready(part_ready), .in_data({part_last, whole_bytes, whole}),
      .out_valid(joins), .out_ready(join_ready), .out_data({join_last, join_bytes, join_piece})
  );
  logic joined, joined_ready, joined_last;
  logic [63:0] joined_data;
  logic [3:0] joined_bytes;
  packer pieces (
      .clk, .rst, .in_valid(joins), .in_ready(join_ready), .in_data(join_piece), .in_bytes(join_bytes),
      .in_last(join_last), .out_valid(joined), .out_ready(joined_ready), .out_data(joined_data), .out_bytes(joined_bytes),
      .out_last(joined_last)
  );
  skid_buffer #(.W(69)) replies (
      .clk, .rst, .in_valid(joined), .in_ready(joined_ready), .in_data({joined_last, joined_bytes, joined_data}), .out_valid,
      .out_ready, .out_data({out_last, out_bytes, out_data})
  );
endmodule
