// SPDX-License-Identifier: Apache-2.0
//
// Keeps each frame of the wire until the core has found out what becomes of it, in the order of the
// frames: one whose request the core has answered is forgotten, all others go to the host as they
// came. Before a frame that may change items and that the core does not understand goes there, all
// copies are ended (`flush`).
//
// A frame goes to the core in the same cycles as it comes here. At most 2**FRAMES_LOG frames are
// here and in the core, so what is found out always has room. REQUIRES: a frame has at most
// 8 * 2**LOG bytes.
module miss_port
  import wc_pkg::*;
#(
    parameter int LOG = 11,        // of the beats of frames
    parameter int FRAMES_LOG = 7
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    input  logic        in_error,      // with in_last: the frame is damaged; it goes nowhere
    output logic        core_valid,    // the same beats
    input  logic        core_ready,
    input  sorting_t    sorting,
    input  logic        verdict_valid,     // of each datagram that udp_rx has passed on
    input  logic        verdict_answered,
    output logic        flush_valid,
    input  logic        flush_done,        // and no later operation finds an older copy
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    output logic        answers,           // for the counters: a frame that is answered
    output logic        forwards,          // a frame that goes to the host
    output logic        idle
);
  // --- Frames come.
  logic [FRAMES_LOG:0] frames;   // that are here
  logic begun;                  // a frame has begun
  logic room, buffer_ready, push, resolved;
  assign room = begun || !frames[FRAMES_LOG];
  assign core_valid = in_valid && buffer_ready && room;
  assign in_ready = core_ready && buffer_ready && room;
  assign push = in_valid && in_ready;

  logic b_valid, b_ready, b_last;
  logic [63:0] b_data;
  logic [3:0] b_bytes;
  packet_fifo #(.W(69), .LOG(LOG)) buffer (
      .clk, .rst, .in_valid(push), .in_ready(buffer_ready), .in_data({in_last, in_bytes, in_data}),
      .commit(push && in_last && !in_error), .abort(push && in_last && in_error), .out_valid(b_valid),
      .out_ready(b_ready), .out_data({b_last, b_bytes, b_data})
  );

  // --- What is known of them. None of these is ever full.
  logic [3:0] never_full;
  logic end_valid, damaged, eth_valid, eth_passed, eth_may, udp_valid, udp_passed, udp_may, answer_valid, answered;
  logic take_udp, take_answer;
  fifo #(.W(1), .LOG(FRAMES_LOG)) ends (
      .clk, .rst, .in_valid(push && in_last), .in_ready(never_full[0]), .in_data(in_error),
      .out_valid(end_valid), .out_ready(resolved), .out_data(damaged)
  );
  fifo #(.W(2), .LOG(FRAMES_LOG)) by_eth (
      .clk, .rst, .in_valid(sorting.eth_dropped || sorting.eth_passed), .in_ready(never_full[1]),
      .in_data({sorting.eth_passed, sorting.eth_may_change}), .out_valid(eth_valid), .out_ready(resolved),
      .out_data({eth_passed, eth_may})
  );
  fifo #(.W(2), .LOG(FRAMES_LOG)) by_udp (
      .clk, .rst, .in_valid(sorting.udp_dropped || sorting.udp_passed), .in_ready(never_full[2]),
      .in_data({sorting.udp_passed, sorting.udp_may_change}), .out_valid(udp_valid), .out_ready(take_udp),
      .out_data({udp_passed, udp_may})
  );
  fifo #(.W(1), .LOG(FRAMES_LOG)) by_store (
      .clk, .rst, .in_valid(verdict_valid), .in_ready(never_full[3]), .in_data(verdict_answered),
      .out_valid(answer_valid), .out_ready(take_answer), .out_data(answered)
  );

  // --- What becomes of the oldest one.
  typedef enum logic [1:0] {R_WAIT, R_FLUSH, R_PASS, R_FORGET} state_t;
  state_t state;
  logic known, changes, done;
  assign known = end_valid && eth_valid && (!eth_passed || (udp_valid && (!udp_passed || answer_valid)));
  assign resolved = state == R_WAIT && known;
  assign take_udp = resolved && eth_passed;
  assign take_answer = take_udp && udp_passed;
  assign changes = eth_passed ? !udp_passed && udp_may : eth_may;
  assign answers = resolved && !damaged && take_answer && answered;
  assign forwards = resolved && !damaged && !(take_answer && answered);

  assign out_valid = state == R_PASS && b_valid;
  assign out_data = b_data;
  assign out_bytes = b_bytes;
  assign out_last = b_last;
  assign b_ready = state == R_FORGET || (state == R_PASS && out_ready);
  assign done = b_valid && b_ready && b_last;
  assign flush_valid = state == R_FLUSH;
  assign idle = frames == '0 && state == R_WAIT;

  always_ff @(posedge clk) begin
    if (rst) begin
      frames <= '0;
      begun <= 1'b0;
      state <= R_WAIT;
    end else begin
      if (push) begun <= !in_last;
      frames <= frames + (FRAMES_LOG + 1)'(push && !begun) - (FRAMES_LOG + 1)'(resolved);
      case (state)
        R_WAIT: if (answers) state <= R_FORGET; else if (forwards) state <= changes ? R_FLUSH : R_PASS;
        R_FLUSH: if (flush_done) state <= R_PASS;
        default: if (done) state <= R_WAIT;
      endcase
    end
  end

  logic unused;
  assign unused = ^never_full;
endmodule
