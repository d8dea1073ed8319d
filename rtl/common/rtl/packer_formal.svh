// SPDX-License-Identifier: Apache-2.0
// Proved of packers of both sizes: bytes leave in order, none is lost or repeated; all beats but a packet's
// last are full; a packet's last beat leaves with its last byte, once; and what is offered stays.
  localparam int F_PIECE = $bits(in_data) / 8;
  localparam int F_HELD = $bits(held) / 8;
  logic f_started = 1'b0;
  logic [4:0] f_in, f_out;               // bytes so far, modulo 32
  (* anyconst *) logic [4:0] f_number;   // any byte
  logic f_have;                          // it is held
  logic [7:0] f_data;
  wire f_takes = in_valid && in_ready;
  wire f_gives = out_valid && out_ready;
  wire [4:0] f_place = f_number - f_out;    // bytes before it
  wire [4:0] f_in_place = f_number - f_in;  // in the piece
  wire f_comes = f_takes && f_in_place < 5'(in_bytes);
  wire f_leaves = f_gives && f_place < 5'(out_bytes);
  logic [7:0] f_piece_byte, f_out_byte, f_held_byte;
  always_comb begin
    f_piece_byte = '0;
    f_out_byte = '0;
    f_held_byte = '0;
    for (int i = 0; i < F_PIECE; i++) if (f_in_place == 5'(i)) f_piece_byte = in_data[8*i+:8];
    for (int i = 0; i < 8; i++) if (f_place == 5'(i)) f_out_byte = out_data[8*i+:8];
    for (int i = 0; i < F_HELD; i++) if (f_place == 5'(i)) f_held_byte = held[8*i+:8];
  end

  initial assume (rst);
  always_comb begin
    assume (5'(in_bytes) <= 5'(F_PIECE));
    for (int i = 0; i < F_PIECE; i++) if (5'(i) >= 5'(in_bytes)) assume (in_data[8*i+:8] == 8'h00);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
    end else begin
      if (f_takes) f_in <= f_in + 5'(in_bytes);
      if (f_gives) f_out <= f_out + 5'(out_bytes);
      if (f_leaves) begin
        f_have <= 1'b0;
      end else if (f_comes) begin
        f_have <= 1'b1;
        f_data <= f_piece_byte;
      end
    end
    if (f_started && !rst) begin
      if (!$past(rst) && $past(in_valid && !in_ready))
        assume (in_valid && in_data == $past(in_data) && in_bytes == $past(in_bytes) && in_last == $past(in_last));
      assert (f_in - f_out == 5'(held_bytes));
      assert (5'(held_bytes) <= 5'(F_HELD));
      assert (f_have == (f_place < 5'(held_bytes)));
      if (f_have) assert (f_held_byte == f_data);
      for (int i = 0; i < F_HELD; i++) if (5'(i) >= 5'(held_bytes)) assert (held[8*i+:8] == 8'h00);
      if (f_leaves) assert (f_out_byte == (f_have ? f_data : f_piece_byte));
      if (f_leaves && !f_have) assert (f_comes);
      if (out_valid) assert (out_bytes <= 4'd8);
      if (out_valid && !out_last) assert (out_bytes == 4'd8);
      // The end of a packet.
      if (rest) assert (held_bytes != '0 && !in_ready && out_valid);
      if (f_gives && out_last) assert (rest || (f_takes && in_last));
      if (f_gives && out_last && !rest) assert (5'(out_bytes) == 5'(held_bytes) + 5'(in_bytes));
      if (f_gives && out_last && rest) assert (5'(out_bytes) == 5'(held_bytes));
      if (!$past(rst) && $past(f_takes && in_last)) assert (rest != $past(f_gives && out_last));
      if (!$past(rst) && $past(out_valid && !out_ready))
        assert (out_valid && out_data == $past(out_data) && out_bytes == $past(out_bytes) && out_last == $past(out_last));
    end
  end
