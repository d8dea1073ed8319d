// SPDX-License-Identifier: Apache-2.0
// Proved: beats are shown in the order in which they came, none is lost or repeated, and their marks are right; `view` is what
// follows in the datagram, and what a reader takes is gone from its front, no byte more or less. A piece is what lies in front,
// up to the first blank or line's end; what is behind that is in front next. Blanks in front of a word, and nothing else, are passed
// over. Pieces come in order, none is lost or repeated, and one that is offered stays.
  logic f_started = 1'b0;
  logic [2:0] f_in, f_out;     // beats so far, modulo 8
  logic [2:0] f_number;        // any beat: chosen by an input that is free in reset
  logic f_have;                // it is inside
  beat_t f_beat;
  logic [1:0] f_pieces_in, f_pieces_out, f_piece_number;  // likewise, of pieces
  logic f_piece_have;
  piece_t f_piece;
  always_ff @(posedge clk) begin
    if (rst) begin
      f_number <= in_data[2:0];
      f_piece_number <= in_data[5:4];
    end
  end
  wire [2:0] f_place = f_number - f_out;
  wire [1:0] f_piece_place = f_piece_number - f_pieces_out;
  wire f_gone = piece_valid && piece_ready;
  beat_t f_at0, f_at1;         // the first beats that are inside
  assign f_at0 = v0 ? q0 : q1;
  assign f_at1 = v0 ? q1 : q2;

  // What follows in the datagram: up to 16 bytes.
  function automatic logic [3:0] f_zeros(logic [7:0] marks);
    f_zeros = '0;
    for (int i = 0; i < 8; i++) f_zeros += {3'd0, !marks[i]};
  endfunction
  wire [3:0] f_off = f_zeros(rem);
  wire [15:0] f_there = {follows ? q1.present : 8'd0, q0.present} >> f_off;
  wire [127:0] f_bytes = {q1.data, q0.data} >> {f_off, 3'd0};
  logic [4:0] f_left;          // how many of them are left
  wire [4:0] f_move = {1'b0, pop, 3'd0} + {1'b0, f_zeros(rem_next)} - {1'b0, f_off};
  logic [3:0] f_len;           // of the piece
  logic f_ends, f_ends_line;
  logic [1:0] f_behind;        // what ends it
  logic f_skips_blanks;
  always_comb begin
    f_left = '0;
    for (int i = 0; i < 16; i++) f_left += {4'd0, f_there[i]};
    f_len = 4'd8;
    f_ends = 1'b0;
    f_ends_line = 1'b0;
    f_behind = 2'd0;
    for (int i = 7; i >= 0; i--) begin
      if (f_there[i] && f_bytes[8*i+:8] == 8'h20) begin
        f_len = 4'(i);
        f_ends = 1'b1;
        f_ends_line = 1'b0;
        f_behind = 2'd1;
      end else if (f_there[i] && f_bytes[8*i+:8] == 8'h0a) begin
        f_len = 4'(i);
        f_ends = 1'b1;
        f_ends_line = 1'b1;
        f_behind = 2'd1;
      end else if (f_there[i+1] && f_bytes[8*i+:16] == 16'h0a0d) begin
        f_len = 4'(i);
        f_ends = 1'b1;
        f_ends_line = 1'b1;
        f_behind = 2'd2;
      end
    end
    f_skips_blanks = 1'b1;
    for (int i = 0; i < 8; i++) if (5'(i) < f_move && f_bytes[8*i+:8] != 8'h20) f_skips_blanks = 1'b0;
  end

  always_comb begin
    if (!f_started) assume (rst);
    assume (in_bytes >= 4'd1 && in_bytes <= 4'd8);
    assume (in_last || in_bytes == 4'd8);
    if (begins) assume (drained && waits);
    // Its readers: no more is taken than there is, nor while a line is cut; a line that is cut has an end.
    if (wants) assume (!cutting && !drains);
    if (take) assume (ready && !cutting && !drains && take_bytes >= 4'd1 && take_bytes <= 4'd8 && {1'b0, take_bytes} <= f_left);
    if (!wants) assume (!take_ends);
    if (take) assume (take_ends == ({2'd0, at} + {1'b0, take_bytes} >= 5'd8));
    if (start) assume (!cutting && !take);
    if (cutting && v0 && q0.last) assume ((q0.lf & rem) != '0);
  end
  function automatic logic f_is_right(beat_t beat);  // but for a LF in front
    f_is_right = beat.present[0] && (beat.last || beat.present == '1);
    for (int i = 0; i < 8; i++) begin
      if (i > 0 && beat.present[i] && !beat.present[i-1]) f_is_right = 1'b0;
      if (beat.blank[i] != (beat.present[i] && beat.data[8*i+:8] == 8'h20)) f_is_right = 1'b0;
      if (beat.ends[i] != (beat.blank[i] || beat.lf[i])) f_is_right = 1'b0;
      if (beat.lf[i] != (beat.present[i] && beat.data[8*i+:8] == 8'h0a)) f_is_right = 1'b0;
      if (i > 0 && beat.crlf[i] != (beat.lf[i] && beat.data[8*i-8+:8] == 8'h0d)) f_is_right = 1'b0;
    end
  endfunction
  function automatic logic f_cr_ends(beat_t beat);
    f_cr_ends = !beat.last && beat.data[63:56] == 8'h0d;
  endfunction

  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
      f_pieces_in <= '0;
      f_pieces_out <= '0;
      f_piece_have <= 1'b0;
    end else begin
      if (accepts) f_in <= f_in + 3'd1;
      if (pop) f_out <= f_out + 3'd1;
      if (accepts && f_in == f_number) begin
        f_have <= 1'b1;
        f_beat <= arrives;
      end else if (pop && f_place == 3'd0) begin
        f_have <= 1'b0;
      end
      if (gives) f_pieces_in <= f_pieces_in + 2'd1;
      if (f_gone) f_pieces_out <= f_pieces_out + 2'd1;
      if (gives && f_pieces_in == f_piece_number) begin
        f_piece_have <= 1'b1;
        f_piece <= next;
      end else if (f_gone && f_piece_place == 2'd0) begin
        f_piece_have <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      // Beats.
      assert (f_in - f_out == {2'd0, v0} + {2'd0, v1} + {2'd0, v2});
      if (v2) assert (v0 && v1);
      if (pop) assert (v0);
      assert (f_have == (f_place < f_in - f_out));
      if (f_have) assert ((f_place == 3'd0 ? f_at0 : f_place == 3'd1 ? f_at1 : q2) == f_beat);
      if (v0) assert (f_is_right(q0));
      if (v1) assert (f_is_right(q1));
      if (v2) assert (f_is_right(q2));
      if (v0 && v1) assert (q1.crlf[0] == (q1.lf[0] && f_cr_ends(q0)));
      if (v2) assert (q2.crlf[0] == (q2.lf[0] && f_cr_ends(q1)));
      if (v0 || v1) assert (cr_before == f_cr_ends(v2 ? q2 : v1 ? q1 : q0));
      // What has been taken.
      for (int i = 1; i < 8; i++) assert (rem[i] || !rem[i-1]);
      assert (off == f_off);
      if (!v0 || drained) assert (rem == '1);
      if (v0) assert ((~rem & ~q0.present) == '0);
      if (ready) begin
        assert (f_there[7:0] == '1 || q0.last || (v1 && q1.last));
        for (int i = 0; i < 8; i++) if (f_there[i]) assert (view[8*i+:8] == f_bytes[8*i+:8]);
      end
      if (take) assert (f_move == {1'b0, take_bytes});
      if (!take && !cuts && !drains && !(v0 && exhausted)) assert (!pop && rem_next == rem);
      if (!drains && exhausted && pop) assert (f_left == '0 || rem == '0);
      // Words.
      if (gives) begin
        assert (next.data == view && next.len == f_len && next.ends == f_ends && next.ends_line == f_ends_line);
        if (!drains) assert (f_move == {1'b0, f_len} + {3'd0, f_behind});
      end
      if (cuts && !gives && !drains) assert (f_move != '0 && f_skips_blanks);
      if (spare_valid) assert (piece_valid);
      assert (f_pieces_in - f_pieces_out == {1'b0, piece_valid} + {1'b0, spare_valid});
      assert (f_piece_have == (f_piece_place < f_pieces_in - f_pieces_out));
      if (f_piece_have) assert ((f_piece_place == 2'd0 ? piece : spare) == f_piece);
      if (!$past(rst) && $past(piece_valid && !piece_ready)) assert (piece_valid && piece == $past(piece));
    end
  end
