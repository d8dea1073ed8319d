// SPDX-License-Identifier: Apache-2.0
// Proved of any slot: it is given out only when it is free, and free again after its reply, after an
// answer without the host, or at the second tick after it was passed on (no slot is lost); a reply is
// copied only for the asker that has the slot, and only if no write to the row of its get has gone to
// the store since the get.
  logic f_started = 1'b0;
  logic [LOG-1:0] f_slot;  // any slot: chosen by an input that is free in reset
  always_ff @(posedge clk) if (rst) f_slot <= begin_slot;
  logic f_held, f_passed, f_written, f_ticked;
  logic [ROW_BITS-1:0] f_row;
  asker_t f_asker;
  wire f_given = begin_valid && begin_ok && begin_slot == f_slot;
  wire f_settled = settle_valid && settle_slot == f_slot;
  wire f_replied = reply_done && reply_slot == f_slot;

  always_comb begin
    if (!f_started) assume (rst);
    if (begin_valid) assume (!kill_valid);
    if (settle_valid) assume (busy[settle_slot] && !passed[settle_slot]);
    if (reply_done) assume (known);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_held <= 1'b0;
      f_passed <= 1'b0;
    end else begin
      if (f_given) begin
        f_held <= 1'b1;
        f_passed <= 1'b0;
        f_written <= 1'b0;
        f_row <= begin_row_hash[ROW_BITS-1:0];
        f_asker <= begin_asker;
      end
      if (kill_valid && (kill_all || kill_row_hash[ROW_BITS-1:0] == f_row)) f_written <= 1'b1;
      if (f_settled) begin
        f_held <= settle_passed;
        f_passed <= settle_passed;
        f_ticked <= 1'b0;
      end else if (f_passed && (f_replied || (tick && f_ticked))) begin
        f_held <= 1'b0;
        f_passed <= 1'b0;
      end else if (tick) begin
        f_ticked <= 1'b1;
      end
    end
    if (f_started && !rst) begin
      assert (busy[f_slot] == f_held && passed[f_slot] == f_passed);
      assert (f_held || !f_passed);
      if (f_given) assert (!f_held);
      if (f_held) begin
        assert (rows[f_slot] == f_row);
        assert (mem[f_slot][$bits(asker_t)+63:64] == f_asker);
        if (f_written) assert (dead[f_slot]);
      end
      if (f_passed) assert (old[f_slot] == f_ticked);
      if (alive && reply_slot == f_slot) assert (f_passed && !f_written && reply_asker == f_asker);
    end
  end
