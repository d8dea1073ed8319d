// SPDX-License-Identifier: Apache-2.0
// Proved of every skid buffer: beats leave in order, none is lost or repeated, and one that is
// offered stays.
  logic f_started = 1'b0;
  logic [3:0] f_in, f_out;                // beats so far, modulo 16
  (* anyconst *) logic [3:0] f_number;    // any beat
  logic f_have;                           // it is in the buffer
  logic [W-1:0] f_data;
  wire [3:0] f_place = f_number - f_out;  // beats before it

  initial assume (rst);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
    end else begin
      if (in_valid && in_ready) f_in <= f_in + 4'd1;
      if (out_valid && out_ready) f_out <= f_out + 4'd1;
      if (in_valid && in_ready && f_in == f_number) begin
        f_have <= 1'b1;
        f_data <= in_data;
      end else if (out_valid && out_ready && f_out == f_number) begin
        f_have <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      assert (f_in - f_out == {3'd0, out_valid} + {3'd0, spare_valid});
      assert (!spare_valid || out_valid);
      if (f_have) begin
        assert (f_place < f_in - f_out);
        assert ((f_place == 4'd0 ? out_data : spare) == f_data);
      end
      assert (f_have || f_place >= f_in - f_out);
      if (!$past(rst) && $past(out_valid && !out_ready)) begin
        assert (out_valid);
        assert (out_data == $past(out_data));
      end
    end
  end
