// SPDX-License-Identifier: Apache-2.0
// Proved: beats come in order, none is lost or repeated, and one that is shown stays until it is taken.
  logic f_started = 1'b0;
  logic [3:0] f_in, f_out;                // beats so far, modulo 16
  (* anyconst *) logic [3:0] f_number;    // any beat
  logic f_have;                           // it is inside
  logic [W-1:0] f_data;
  wire f_comes = in_valid && in_ready;
  wire [3:0] f_taken = take ? (take_both ? 4'd2 : 4'd1) : 4'd0;
  wire [3:0] f_place = f_number - f_out;  // beats before it

  initial assume (rst);
  always_comb assume (!take || first_valid);
  always_comb assume (!take_both || (take && second_valid));
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
    end else begin
      if (f_comes) f_in <= f_in + 4'd1;
      f_out <= f_out + f_taken;
      if (f_comes && f_in == f_number) begin
        f_have <= 1'b1;
        f_data <= in_data;
      end else if (f_place < f_taken) begin
        f_have <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      assert (f_in - f_out == {3'd0, first_valid} + {3'd0, waits} + {3'd0, spare_valid});
      if (spare_valid) assert (first_valid && waits);
      assert (f_have == (f_place < f_in - f_out));
      if (f_have) assert ((first_valid && f_place == 4'd0 ? first : f_place == {3'd0, first_valid} ? second : spare) == f_data);
      if (!$past(rst) && $past(first_valid && !take)) assert (first_valid && first == $past(first));
      if (!$past(rst) && $past(second_valid && !take)) assert (second_valid && second == $past(second));
    end
  end
