// SPDX-License-Identifier: Apache-2.0
//
// Counters of events, and what a host may set. Reading takes one cycle.
//
// The counters are in distributed memory. One after the other takes up what has been counted
// beside it since the last time: both are read in a cycle, and added and written in the next one.
//
//   address  read                          write
//   0        seconds                       seconds
//   1        Unix time at second 0         the same
//   2        generation, low 32 bits       next CAS id, low 32 bits
//   3        1: ready for requests         next CAS id, high 32 bits; sets both
//   16 + i   counter i
module csr #(
    parameter int COUNTERS = 16   // at most 48
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                write,
    input  logic [5:0]          address,
    input  logic [31:0]         write_data,
    output logic [31:0]         read_data,
    input  logic [COUNTERS-1:0] events,
    input  logic [COUNTERS-1:0] events_too,  // of another block, maybe in the same cycle
    input  logic [31:0]         now,
    input  logic [31:0]         unix_start,
    input  logic [31:0]         generation,
    input  logic                ready,
    output logic                set_clock,
    output logic [31:0]         set_now,
    output logic [31:0]         set_unix_start,
    output logic                set_cas,
    output logic [63:0]         cas
);
  localparam int LOG = $clog2(COUNTERS);
  localparam int RECENT = LOG + 2;  // bits: two events in each cycle of a round, and in the one after it
  logic [31:0] counters[2**LOG];
  logic [RECENT-1:0] recent[2**LOG];
  // Events come from far away, so they go into registers as they are.
  logic [COUNTERS-1:0] events_q, events_too_q;
  logic [1:0] gained[COUNTERS], gained_before[COUNTERS];  // events of the cycle before, and of that before it
  for (genvar i = 0; i < COUNTERS; i++) begin : g_gained
    assign gained[i] = {events_q[i] && events_too_q[i], events_q[i] ^ events_too_q[i]};
  end
  logic [LOG-1:0] turn, writes;  // the counter that is read, and that which is written, a cycle later
  logic begun, written;  // all counters have been since the reset
  logic [31:0] cas_low;

  assign set_clock = write && address <= 6'd1;
  assign set_now = address == 6'd0 ? write_data : now;
  assign set_unix_start = address == 6'd1 ? write_data : unix_start;
  assign set_cas = write && address == 6'd3;
  assign cas = {write_data, cas_low};

  logic [5:0] index;
  logic [LOG-1:0] place;
  logic [31:0] counted, found, base;
  logic [RECENT-1:0] more;
  assign index = address - 6'd16;
  assign place = index[LOG-1:0];
  assign counted = counters[place];
  assign found = (written || place < writes ? counted : 32'd0) + 32'(recent[place]);
  always_ff @(posedge clk) begin
    case (address)
      6'd0: read_data <= now;
      6'd1: read_data <= unix_start;
      6'd2: read_data <= generation;
      6'd3: read_data <= {31'd0, ready};
      default: read_data <= index < 6'(COUNTERS) ? found : 32'd0;
    endcase
    if (write && address == 6'd2) cas_low <= write_data;
  end
  always_ff @(posedge clk) begin
    base <= begun ? counters[turn] : 32'd0;
    more <= recent[turn];
  end
  always_ff @(posedge clk) counters[writes] <= base + 32'(more);
  always_ff @(posedge clk) begin
    if (rst) begin
      turn <= '0;
      writes <= '0;
      begun <= 1'b0;
      written <= 1'b0;
    end else begin
      turn <= turn + 1'b1;
      writes <= turn;
      if (&turn) begun <= 1'b1;
      written <= begun;
    end
    events_q <= rst ? '0 : events;
    events_too_q <= rst ? '0 : events_too;
    for (int i = 0; i < COUNTERS; i++) gained_before[i] <= rst ? 2'd0 : gained[i];
    // With the write goes what had been counted when the counter was read: what has come since stays.
    for (int i = 0; i < 2 ** LOG; i++) begin
      if (rst || i >= COUNTERS) recent[i] <= '0;
      else recent[i] <= (writes == LOG'(i) ? {{LOG{1'b0}}, gained_before[i]} : recent[i]) + {{LOG{1'b0}}, gained[i]};
    end
  end
endmodule
