// SPDX-License-Identifier: Apache-2.0
//
// The first word in the window, and what ends it. Combinational. A line ends with LF or CR LF.
module text_scan
  import wc_pkg::*;
(
    input  logic [55:0] view,
    input  marks_t      marks,
    input  logic [7:0]  with_end,     // after a word of so many bytes its line end is taken too
    output logic [4:0]  word,         // bytes before the first delimiter of 16; 16: none
    output logic [3:0]  word8,        // the same in 8 bytes
    output logic        ends_word,    // the word ends within the first 8 bytes
    output logic        far_clear,    // no word ends within the 8 bytes after these
    output logic        blank_after,  // with a blank
    output logic        end_after,    // with the line
    output logic [3:0]  word_take,    // the word, up to 8 bytes of it, and what is taken with it
    output logic        word_is_noreply,
    output logic        at_blank,     // the first byte is one
    output logic        at_end,       // the line ends here
    output logic        at_delim,
    output logic        at_crlf,
    output logic        short_line    // it has less than three bytes, with its end
);
  logic [15:0] is_end, is_delim, is_crlf;
  assign is_crlf = marks.cr[15:0] & marks.lf[16:1];
  assign is_end = marks.lf[15:0] | is_crlf;
  assign is_delim = marks.blank[15:0] | is_end;
  always_comb begin
    word = 5'd16;
    for (int i = 15; i >= 0; i--) if (is_delim[i]) word = 5'(i);
  end
  assign word8 = word > 5'd8 ? 4'd8 : word[3:0];
  assign ends_word = is_delim[7:0] != '0;
  assign far_clear = is_delim[15:8] == '0;

  // For each byte what is taken if it is the first delimiter, and then a tree that finds the first
  // one: the size is known as soon as the place.
  logic [3:0] tree[4][8];   // of groups of 1, 2, 4, 8 bytes
  logic [7:0] any[4];
  always_comb begin
    for (int l = 0; l < 4; l++) begin
      any[l] = '0;
      for (int i = 0; i < 8; i++) tree[l][i] = 4'd8;
    end
    any[0] = is_delim[7:0];
    for (int i = 0; i < 8; i++) begin
      if (marks.blank[i]) tree[0][i] = 4'(i + 1);
      else if (with_end[i]) tree[0][i] = is_crlf[i] ? 4'(i + 2) : 4'(i + 1);
      else tree[0][i] = is_delim[i] ? 4'(i) : 4'd8;
    end
    for (int l = 1; l < 4; l++) begin
      for (int i = 0; i < (8 >> l); i++) begin
        any[l][i] = any[l-1][2*i] || any[l-1][2*i+1];
        tree[l][i] = any[l-1][2*i] ? tree[l-1][2*i] : tree[l-1][2*i+1];
      end
    end
  end
  assign word_take = any[3][0] ? tree[3][0] : 4'd8;
  assign blank_after = marks.blank[{1'b0, word[3:0]}] && !word[4];
  assign end_after = is_end[word[3:0]] && !word[4];

  assign word_is_noreply = word == 5'd7 && view == {"y", "l", "p", "e", "r", "o", "n"};
  assign at_blank = marks.blank[0];
  assign at_end = is_end[0];
  assign at_delim = is_delim[0];
  assign at_crlf = is_crlf[0];
  assign short_line = is_end[0] || is_end[1] || (is_end[2] && !is_crlf[2]);
endmodule
