// SPDX-License-Identifier: Apache-2.0
// Proved: a beat that leaves is one that comes in, of one side; a frame is never interrupted by the
// other side's; what is offered stays; and a frame that waits is next when the other side's ends.
  logic f_started = 1'b0;
  logic f_within, f_from_b;   // a frame has begun to leave, and whose
  logic f_a_waits, f_b_waits;
  initial assume (rst);
  wire f_passes = out_valid && out_ready;
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_within <= 1'b0;
      f_a_waits <= 1'b0;
      f_b_waits <= 1'b0;
    end else begin
      if (f_passes) begin
        f_within <= !out_last;
        f_from_b <= b_ready;
      end
      // Since before the other side's frame ended.
      f_a_waits <= a_valid && !a_ready && f_passes && out_last;
      f_b_waits <= b_valid && !b_ready && f_passes && out_last;
    end
    if (f_started && !rst) begin
      if (!$past(rst)) begin
        if ($past(a_valid && !a_ready)) assume (a_valid && a_data == $past(a_data) && a_last == $past(a_last));
        if ($past(b_valid && !b_ready)) assume (b_valid && b_data == $past(b_data) && b_last == $past(b_last));
        if ($past(out_valid && !out_ready))
          assert (out_valid && out_data == $past(out_data) && out_last == $past(out_last));
      end
      assert (!(a_valid && a_ready && b_valid && b_ready));
      assert (f_passes == ((a_valid && a_ready) || (b_valid && b_ready)));
      if (a_valid && a_ready) assert (out_data == a_data && out_last == a_last && (!f_within || !f_from_b));
      if (b_valid && b_ready) assert (out_data == b_data && out_last == b_last && (!f_within || f_from_b));
      if (f_within) assert (begun && chosen == f_from_b);
      if (f_a_waits) assert (!choice);
      if (f_b_waits) assert (choice);
      if (a_valid || b_valid) assert (begun || out_valid);
    end
  end
