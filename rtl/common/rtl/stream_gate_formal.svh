// SPDX-License-Identifier: Apache-2.0
// Proved: a beat passes on both sides in the same cycle, one that is offered stays, and nothing is
// held back without `hold`.
  logic f_started = 1'b0;
  initial assume (rst);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (f_started && !rst) begin
      if (!$past(rst) && $past(in_valid && !in_ready)) assume (in_valid);
      assert ((in_valid && in_ready) == (out_valid && out_ready));
      if (!$past(rst) && $past(out_valid && !out_ready)) assert (out_valid);
      if (in_valid && !hold) assert (out_valid);
    end
  end
