// SPDX-License-Identifier: Apache-2.0
// Proved: bytes come out in order, none is lost or repeated; bytes after the packet's end are zero;
// the window never holds bytes of two packets, and `tail` says that the packet's last one is in it.
  logic f_started = 1'b0;
  logic [4:0] f_in, f_out;               // bytes so far, modulo 32
  (* anyconst *) logic [4:0] f_number;   // any byte
  logic f_have;                          // it is in the window
  logic [BITS-1:0] f_data;
  logic f_last;                          // the beat taken last ended its packet
  wire f_takes = in_valid && in_ready;
  wire [4:0] f_place = f_number - f_out;
  wire [4:0] f_in_place = f_number - f_in;
  logic [BITS-1:0] f_in_byte, f_view_byte;
  always_comb begin
    f_in_byte = '0;
    f_view_byte = '0;
    for (int i = 0; i < 8; i++) if (f_in_place == 5'(i)) f_in_byte = in_data[BITS*i+:BITS];
    for (int i = 0; i < 31; i++) if (f_place == 5'(i)) f_view_byte = held[EACH*i+:BITS];
  end

  initial assume (rst);
  always_comb begin
    assume ({1'b0, take} <= count);
    assume (in_bytes >= 4'd1 && in_bytes <= 4'd8);
    assume (in_last || in_bytes == 4'd8);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
      f_last <= 1'b0;
    end else begin
      if (f_takes) f_in <= f_in + {1'b0, in_bytes};
      if (f_takes) f_last <= in_last;
      f_out <= f_out + {1'b0, take};
      if (f_takes && f_in_place < {1'b0, in_bytes}) begin
        f_have <= 1'b1;
        f_data <= f_in_byte;
      end else if (f_place < {1'b0, take}) begin
        f_have <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      for (int i = 0; i < 25; i++) assert (at_least[i] == (count >= 5'(i)));
      assert (f_in - f_out == count);
      assert (f_have == (f_place < count));
      if (f_have) assert (f_view_byte == f_data);
      for (int i = 0; i < 24; i++) assert (view[BITS*i+:BITS] == held[EACH*i+:BITS]);
      for (int i = 0; i < 32; i++) assert (5'(i) >= count ? held[EACH*i+:EACH] == '0 : held[EACH*i+BITS]);
      assert (tail == (f_last && count != 5'd0));
      // A new packet begins only when the one before it has been taken.
      if (f_takes && f_last) assert ({1'b0, take} == count);
    end
  end
