// SPDX-License-Identifier: Apache-2.0
//
// Joins an item's value and an operation's to the words of the new value, for append and prepend.
module value_join
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        begins,     // before all else; sizes are there
    input  logic        appends,
    input  logic [11:0] old_vlen,
    input  logic [11:0] op_vlen,
    input  logic        active,     // both values are at their first words, or beyond
    input  logic        word_valid, // of the item
    input  logic [63:0] word,
    output logic        takes_word,
    input  logic        value_valid,
    input  logic [63:0] value_data,
    output logic        takes_value,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data
);
  logic from_item;      // the next piece is of the old value
  logic [11:0] part_left, other_left;  // bytes of it, and of what comes behind it
  logic part_ends, old_first, parts_left;
  logic joins, join_valid, join_ready, join_last;
  logic [63:0] join_data;
  logic [3:0] join_bytes;
  assign joins = active && parts_left;
  assign join_valid = joins && (from_item ? word_valid : value_valid);
  assign join_data = from_item ? word : value_data;
  assign part_ends = part_left <= 12'd8;
  assign join_bytes = part_ends ? part_left[3:0] : 4'd8;
  assign join_last = part_ends && other_left == 12'd0;
  assign old_first = appends ? old_vlen != 12'd0 : op_vlen == 12'd0;
  assign takes_word = joins && from_item && join_ready;
  assign takes_value = joins && !from_item && join_ready;
  always_ff @(posedge clk) begin
    if (begins) begin
      from_item <= old_first;
      part_left <= old_first ? old_vlen : op_vlen;
      other_left <= old_first ? (appends ? op_vlen : 12'd0) : (appends ? 12'd0 : old_vlen);
      parts_left <= 1'b1;
    end else if (join_valid && join_ready) begin
      part_left <= part_ends ? other_left : part_left - 12'd8;
      if (part_ends) begin
        from_item <= !from_item;
        other_left <= '0;
        if (other_left == 12'd0) parts_left <= 1'b0;
      end
    end
  end

  logic packs, pack_ready, pack_last, piece_valid, piece_ready, piece_last;
  logic [63:0] pack_data, piece;
  logic [3:0] pack_bytes, piece_bytes;
  skid_buffer #(.W(69)) joined_pieces (
      .clk, .rst, .in_valid(join_valid), .in_ready(join_ready), .in_data({join_last, join_bytes, join_data}),
      .out_valid(piece_valid), .out_ready(piece_ready), .out_data({piece_last, piece_bytes, piece})
  );
  packer #(.PIECE(8)) pieces (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data(piece),
      .in_bytes({1'b0, piece_bytes}), .in_last(piece_last), .out_valid(packs),
      .out_ready(pack_ready), .out_data(pack_data), .out_bytes(pack_bytes), .out_last(pack_last)
  );
  skid_buffer #(.W(64)) packed_pieces (
      .clk, .rst, .in_valid(packs), .in_ready(pack_ready), .in_data(pack_data), .out_valid, .out_ready, .out_data
  );

  logic unused;
  assign unused = pack_last ^ (^pack_bytes);
endmodule
