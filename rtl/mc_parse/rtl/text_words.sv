// SPDX-License-Identifier: Apache-2.0
//
// Finds out what the words of lines are, in a cycle of its own between who cuts them and who reads them.
module text_words
  import wc_pkg::*;
(
    input  logic   clk,
    input  logic   rst,
    input  logic   in_valid,
    output logic   in_ready,
    input  piece_t in_piece,
    output logic   out_valid,
    input  logic   out_ready,
    output word_t  out_word
);
  command_t named;
  op_t named_op;
  long_t begins;
  logic [7:0] completes;
  logic noreply;
  text_command names (.piece(in_piece), .named, .named_op, .begins, .completes);
  assign noreply = in_piece.len == 4'd7 && in_piece.data[55:0] == {"y", "l", "p", "e", "r", "o", "n"};
  skid_buffer #(.W($bits(word_t))) words (
      .clk, .rst, .in_valid, .in_ready, .in_data({named, named_op, begins, completes, noreply, in_piece}), .out_valid, .out_ready, .out_data(out_word)
  );
endmodule
