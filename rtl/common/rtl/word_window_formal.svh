// SPDX-License-Identifier: Apache-2.0
// Proved: words come out in order, none is lost or repeated, and the count is right.
  logic f_started = 1'b0;
  logic [2:0] f_in, f_out;               // words so far, modulo 8
  (* anyconst *) logic [2:0] f_number;   // any word
  logic f_have;                          // it is in the window
  logic [63:0] f_data;
  wire f_takes = in_valid && in_ready;
  wire [2:0] f_place = f_number - f_out;
  wire [2:0] f_in_place = f_number - f_in;
  logic [63:0] f_held_word;
  always_comb begin
    f_held_word = '0;
    for (int i = 0; i < 4; i++) if (f_place == 3'(i)) f_held_word = held[64*i+:64];
  end

  initial assume (rst);
  always_comb assume (take <= 2'd2 && {1'b0, take} <= count);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
    end else begin
      if (f_takes) f_in <= f_in + (in_two ? 3'd2 : 3'd1);
      f_out <= f_out + {1'b0, take};
      if (f_takes && f_in_place < (in_two ? 3'd2 : 3'd1)) begin
        f_have <= 1'b1;
        f_data <= f_in_place == 3'd0 ? in_data[63:0] : in_data[127:64];
      end else if (f_place < {1'b0, take}) begin
        f_have <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      assert (count <= 3'd4);
      assert (one == (count != 3'd0) && two == (count >= 3'd2) && room == (count <= 3'd2));
      assert (f_in - f_out == count);
      assert (f_have == (f_place < count));
      if (f_have) assert (f_held_word == f_data);
      for (int i = 0; i < 4; i++) if (3'(i) >= count) assert (held[64*i+:64] == 64'd0);
    end
  end
