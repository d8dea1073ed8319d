// SPDX-License-Identifier: Apache-2.0
//
// Seconds, and the generation of items. flush_all raises the generation; items of an older one are
// dead, so a flush takes one cycle. A delayed flush raises it when its second comes.
module expiry_clock
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        tick,         // once a second
    input  logic        set_valid,    // sets the clock
    input  logic [31:0] set_now,
    input  logic [31:0] set_unix_start,  // Unix time at second 0
    input  logic        flush_valid,
    input  logic [31:0] flush_exptime,  // REQUIRES: the same in the cycle before
    output logic [31:0] now,
    output logic [31:0] unix_start,
    output logic [39:0] generation
);
  logic pending;
  // Numbers that are one less or more are registers of their own, so no two chains of carries are behind one another.
  logic [31:0] flush_at, before_flush_at;
  logic [31:0] flush_second, now_next, now_before, start_behind;
  logic later, may_wait;

  // A cycle before it is used.
  always_ff @(posedge clk) begin
    if (flush_exptime <= RELATIVE_MAX) flush_second <= now_before + flush_exptime;
    else flush_second <= flush_exptime <= unix_start ? 32'd0 : flush_exptime - start_behind;
    may_wait <= flush_exptime != 32'd0 && !flush_exptime[31];
  end
  assign later = may_wait && flush_second > now;
  assign now_next = set_valid ? set_now : tick ? now + 32'd1 : now;

  logic comes;  // now_next >= flush_at
  assign comes = set_valid ? set_now >= flush_at : now >= (tick ? before_flush_at : flush_at);

  always_ff @(posedge clk) begin
    if (rst) begin
      now <= 32'd2;
      now_before <= 32'd1;
      start_behind <= 32'd1;
      unix_start <= 32'd0;
      generation <= '0;
      pending <= 1'b0;
      flush_at <= '0;
    end else begin
      now <= now_next;
      now_before <= set_valid ? set_now - 32'd1 : tick ? now : now_before;
      if (set_valid) begin
        unix_start <= set_unix_start;
        start_behind <= set_unix_start + 32'd1;
      end
      if (flush_valid) begin
        pending <= later;
        flush_at <= flush_second;
        before_flush_at <= flush_second - 32'd1;  // it waits: at least 0
        if (!later) generation <= generation + 40'd1;
      end else if (pending && comes) begin
        pending <= 1'b0;
        generation <= generation + 40'd1;
      end
    end
  end
endmodule
