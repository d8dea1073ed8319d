// SPDX-License-Identifier: Apache-2.0
//
// The network side of a core: frames to operations with the hashes of their keys, and results to
// frames. The results come in the order of the operations.
module mc_front
  import wc_pkg::*;
#(
    parameter int KEY_MAX = DEFAULT_KEY_MAX,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX,
    parameter int HASH = HASH_TWO_CRCS,
    parameter int GATES = 10   // streams that a test may hold back
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [15:0]      udp_port,
    input  logic [GATES-1:0] hold,
    input  logic             rx_valid,
    output logic             rx_ready,
    input  logic [63:0]      rx_data,
    input  logic [3:0]       rx_bytes,
    input  logic             rx_last,
    input  logic             rx_error,
    output logic             tx_valid,
    input  logic             tx_ready,
    output logic [63:0]      tx_data,
    output logic [3:0]       tx_bytes,
    output logic             tx_last,
    // Operations; their keys and values no later than they.
    output logic             op_valid,
    input  logic             op_ready,
    output meta_t            op,
    output logic [31:0]      op_row_hash,
    output logic [31:0]      op_tag_hash,
    output logic             key_valid,
    input  logic             key_ready,
    output logic [63:0]      key_data,
    output logic             value_valid,
    input  logic             value_ready,
    output logic [63:0]      value_data,
    // Results.
    input  logic             result_valid,
    output logic             result_ready,
    input  result_t          result,
    input  logic             key_in_valid,
    output logic             key_in_ready,
    input  logic [63:0]      key_in_data,
    input  logic             value_in_valid,
    output logic             value_in_ready,
    input  logic [63:0]      value_in_data,
    // For the counters.
    output front_events_t    events,
    output front_events_t    events_too,
    output sorting_t         sorting,
    output logic             idle
);
  // --- Ethernet, IP, UDP.
  logic ec_v, ec_r, ec_v6;
  eth_ctx_t ec;
  logic l3_v, l3_r, l3_last, l3_err;
  logic [63:0] l3_d;
  logic [3:0] l3_b;
  logic d_eth_nfu, d_eth_trunc, d_eth_unsup, d_eth_may;
  eth_rx u_eth_rx (
      .clk, .rst, .in_valid(rx_valid), .in_ready(rx_ready), .in_data(rx_data), .in_bytes(rx_bytes),
      .in_last(rx_last), .in_error(rx_error), .ctx_valid(ec_v), .ctx_ready(ec_r), .ctx(ec), .ctx_v6(ec_v6),
      .out_valid(l3_v), .out_ready(l3_r), .out_data(l3_d), .out_bytes(l3_b), .out_last(l3_last),
      .out_error(l3_err), .drop_not_for_us(d_eth_nfu), .drop_truncated(d_eth_trunc),
      .drop_unsupported(d_eth_unsup), .drop_may_change(d_eth_may)
  );
  logic ec2_v, ec2_r, ec2_v6;
  eth_ctx_t ec2;
  fifo #(.W($bits(eth_ctx_t) + 1), .LOG(2), .HEAD(1'b1)) f_eth_ctx (
      .clk, .rst, .in_valid(ec_v), .in_ready(ec_r), .in_data({ec_v6, ec}), .out_valid(ec2_v),
      .out_ready(ec2_r), .out_data({ec2_v6, ec2})
  );
  logic l3s_v, l3s_r, l3s_last, l3s_err, l3g_v, l3g_r;
  logic [63:0] l3s_d;
  logic [3:0] l3s_b;
  fifo #(.W(70), .LOG(4)) f_l3 (
      .clk, .rst, .in_valid(l3_v), .in_ready(l3_r), .in_data({l3_err, l3_last, l3_b, l3_d}),
      .out_valid(l3s_v), .out_ready(l3s_r), .out_data({l3s_err, l3s_last, l3s_b, l3s_d})
  );
  stream_gate g0 (.clk, .rst, .hold(hold[0]), .in_valid(l3s_v), .in_ready(l3s_r), .out_valid(l3g_v), .out_ready(l3g_r));

  logic cx_v, cx_r, cx2_v, cx2_r, in_v, in_r, in2_v, in2_r, in2g_v, in2g_r;
  ctx_t cx, cx2;
  info_t info, info2;
  logic p_v, p_r, p_last, pg_v, pg_r;
  logic [63:0] p_d;
  logic [3:0] p_b;
  logic e_pass, e_nfu, e_trunc, e_sum, e_frag, e_unsup, e_mal, e_may;
  udp_rx u_udp_rx (
      .clk, .rst, .udp_port, .eth_valid(ec2_v), .eth_ready(ec2_r), .eth(ec2), .eth_v6(ec2_v6),
      .in_valid(l3g_v), .in_ready(l3g_r), .in_data(l3s_d), .in_bytes(l3s_b), .in_last(l3s_last),
      .in_error(l3s_err), .ctx_valid(cx_v), .ctx_ready(cx_r), .ctx(cx), .info_valid(in_v),
      .info_ready(in_r), .info, .out_valid(p_v), .out_ready(p_r), .out_data(p_d), .out_bytes(p_b),
      .out_last(p_last), .passed(e_pass), .drop_not_for_us(e_nfu), .drop_truncated(e_trunc),
      .drop_checksum(e_sum), .drop_fragment(e_frag), .drop_unsupported(e_unsup), .drop_malformed(e_mal),
      .drop_may_change(e_may)
  );
  // Contexts wait here for their replies, which come in order.
  packet_fifo #(.W($bits(ctx_t)), .LOG(7), .REG(1'b1)) f_ctx (
      .clk, .rst, .in_valid(cx_v), .in_ready(cx_r), .in_data(cx), .commit(1'b1), .abort(1'b0),
      .out_valid(cx2_v), .out_ready(cx2_r), .out_data(cx2)
  );
  fifo #(.W($bits(info_t)), .LOG(5), .HEAD(1'b1)) f_info (
      .clk, .rst, .in_valid(in_v), .in_ready(in_r), .in_data(info), .out_valid(in2_v),
      .out_ready(in2_r), .out_data(info2)
  );
  stream_gate g1 (.clk, .rst, .hold(hold[1]), .in_valid(p_v), .in_ready(p_r), .out_valid(pg_v), .out_ready(pg_r));
  stream_gate g2 (.clk, .rst, .hold(hold[2]), .in_valid(in2_v), .in_ready(in2_r), .out_valid(in2g_v), .out_ready(in2g_r));

  // --- Requests to operations.
  logic o2_v, o2_r, k_v, k_r, v_v, v_r;
  meta_t o2;
  logic [63:0] k_d, v_d;
  mc_parse #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_parse (
      .clk, .rst, .info_valid(in2g_v), .info_ready(in2g_r), .info(info2), .in_valid(pg_v),
      .in_ready(pg_r), .in_data(p_d), .in_bytes(p_b), .in_last(p_last), .op_valid(o2_v),
      .op_ready(o2_r), .op(o2), .key_valid(k_v), .key_ready(k_r), .key_data(k_d), .value_valid(v_v),
      .value_ready(v_r), .value_data(v_d)
  );
  logic o2g_v, o2g_r, k2_v, k2_r, k2g_v, k2g_r, v2_v, v2_r;
  logic [63:0] k2_d;
  packet_fifo #(.W(64), .LOG(6), .REG(1'b1)) f_key (
      .clk, .rst, .in_valid(k_v), .in_ready(k_r), .in_data(k_d), .commit(1'b1), .abort(1'b0), .out_valid(k2_v),
      .out_ready(k2_r), .out_data(k2_d)
  );
  packet_fifo #(.W(64), .LOG(10), .REG(1'b1)) f_value (
      .clk, .rst, .in_valid(v_v), .in_ready(v_r), .in_data(v_d), .commit(1'b1), .abort(1'b0),
      .out_valid(v2_v), .out_ready(v2_r), .out_data(value_data)
  );
  stream_gate g3 (.clk, .rst, .hold(hold[3]), .in_valid(o2_v), .in_ready(o2_r), .out_valid(o2g_v), .out_ready(o2g_r));
  stream_gate g4 (.clk, .rst, .hold(hold[4]), .in_valid(k2_v), .in_ready(k2_r), .out_valid(k2g_v), .out_ready(k2g_r));
  stream_gate g5 (.clk, .rst, .hold(hold[5]), .in_valid(v2_v), .in_ready(v2_r), .out_valid(value_valid), .out_ready(value_ready));

  // --- Hash and index.
  logic hs_v, hs_r, k3_v, k3_r;
  meta_t hs;
  logic [31:0] hs_row, hs_tag;
  logic [63:0] k3_d;
  key_hash #(.HASH(HASH)) u_hash (
      .clk, .rst, .op_valid(o2g_v), .op_ready(o2g_r), .op(o2), .key_valid(k2g_v), .key_ready(k2g_r),
      .key_data(k2_d), .out_valid(hs_v), .out_ready(hs_r), .out_op(hs), .out_row_hash(hs_row),
      .out_tag_hash(hs_tag), .out_key_valid(k3_v), .out_key_ready(k3_r), .out_key_data(k3_d)
  );
  logic hr_v, hr_r;
  assign hr_v = hs_v;
  assign hs_r = hr_r;
  skid_buffer #(.W($bits(meta_t) + 64)) f_hashed (
      .clk, .rst, .in_valid(hr_v), .in_ready(hr_r), .in_data({hs, hs_row, hs_tag}), .out_valid(op_valid),
      .out_ready(op_ready), .out_data({op, op_row_hash, op_tag_hash})
  );
  logic k4_v, k4_r;
  packet_fifo #(.W(64), .LOG(9), .REG(1'b1)) f_key2 (
      .clk, .rst, .in_valid(k3_v), .in_ready(k3_r), .in_data(k3_d), .commit(1'b1), .abort(1'b0),
      .out_valid(k4_v), .out_ready(k4_r), .out_data(key_data)
  );
  stream_gate g6 (.clk, .rst, .hold(hold[6]), .in_valid(k4_v), .in_ready(k4_r), .out_valid(key_valid), .out_ready(key_ready));

  // --- Replies.
  logic rs_v, rs_r, vo_v, vo_r;
  stream_gate g9 (.clk, .rst, .hold(hold[7]), .in_valid(result_valid), .in_ready(result_ready), .out_valid(rs_v), .out_ready(rs_r));
  stream_gate g10 (.clk, .rst, .hold(hold[8]), .in_valid(value_in_valid), .in_ready(value_in_ready), .out_valid(vo_v), .out_ready(vo_r));
  logic f2_v, f2_r, f2_last, f2g_v, f2g_r;
  logic [63:0] f2_d;
  logic [3:0] f2_b;
  mc_format u_format (
      .clk, .rst, .result_valid(rs_v), .result_ready(rs_r), .result, .key_valid(key_in_valid),
      .key_ready(key_in_ready), .key_data(key_in_data), .value_valid(vo_v), .value_ready(vo_r),
      .value_data(value_in_data), .out_valid(f2_v), .out_ready(f2_r), .out_data(f2_d), .out_bytes(f2_b), .out_last(f2_last)
  );
  stream_gate g11 (.clk, .rst, .hold(hold[9]), .in_valid(f2_v), .in_ready(f2_r), .out_valid(f2g_v), .out_ready(f2g_r));
  logic et_v, et_r, et_v6, et2_v, et2_r, et2_v6, u_v, u_r, u_last, u2_v, u2_r, u2_last, reply_dropped;
  eth_ctx_t et, et2;
  logic [63:0] u_d, u2_d;
  logic [3:0] u_b, u2_b;
  udp_tx u_udp_tx (
      .clk, .rst, .ctx_valid(cx2_v), .ctx_ready(cx2_r), .ctx(cx2), .in_valid(f2g_v), .in_ready(f2g_r),
      .in_data(f2_d), .in_bytes(f2_b), .in_last(f2_last), .eth_valid(et_v), .eth_ready(et_r), .eth(et),
      .eth_v6(et_v6), .out_valid(u_v), .out_ready(u_r), .out_data(u_d),
      .out_bytes(u_b), .out_last(u_last), .dropped(reply_dropped)
  );
  fifo #(.W($bits(eth_ctx_t) + 1), .LOG(2), .HEAD(1'b1)) f_eth_tx (
      .clk, .rst, .in_valid(et_v), .in_ready(et_r), .in_data({et_v6, et}), .out_valid(et2_v),
      .out_ready(et2_r), .out_data({et2_v6, et2})
  );
  skid_buffer #(.W(69)) s_udp (
      .clk, .rst, .in_valid(u_v), .in_ready(u_r), .in_data({u_last, u_b, u_d}), .out_valid(u2_v),
      .out_ready(u2_r), .out_data({u2_last, u2_b, u2_d})
  );
  logic t_v, t_r, t_last;
  logic [63:0] t_d;
  logic [3:0] t_b;
  eth_tx u_eth_tx (
      .clk, .rst, .eth_valid(et2_v), .eth_ready(et2_r), .eth(et2), .eth_v6(et2_v6),
      .in_valid(u2_v), .in_ready(u2_r), .in_data(u2_d), .in_bytes(u2_b), .in_last(u2_last),
      .out_valid(t_v), .out_ready(t_r), .out_data(t_d), .out_bytes(t_b), .out_last(t_last)
  );
  skid_buffer #(.W(69)) s_tx (
      .clk, .rst, .in_valid(t_v), .in_ready(t_r), .in_data({t_last, t_b, t_d}), .out_valid(tx_valid),
      .out_ready(tx_ready), .out_data({tx_last, tx_bytes, tx_data})
  );

  always_comb begin
    events = '0;
    events.frame = rx_valid && rx_ready && rx_last;
    events.request = e_pass;
    events.not_for_us = e_nfu;
    events.truncated = e_trunc;
    events.bad_checksum = e_sum;
    events.fragment = e_frag;
    events.unsupported = e_unsup;
    events.malformed = e_mal;
    events.datagram_done = cx2_v && cx2_r;
    events.frame_sent = tx_valid && tx_ready && tx_last;
    events.reply_dropped = reply_dropped;
    // Frames that did not come as far as udp_rx.
    events_too = '0;
    events_too.not_for_us = d_eth_nfu;
    events_too.truncated = d_eth_trunc;
    events_too.unsupported = d_eth_unsup;
  end
  always_comb begin
    sorting.eth_dropped = d_eth_nfu || d_eth_trunc || d_eth_unsup;
    sorting.eth_passed = ec_v && ec_r;
    sorting.eth_may_change = d_eth_may;
    sorting.udp_dropped = e_nfu || e_trunc || e_sum || e_frag || e_unsup || e_mal;
    sorting.udp_passed = e_pass;
    sorting.udp_may_change = e_may;
    sorting.asker.v6 = cx.v6;
    sorting.asker.ip = cx.src_ip;
    sorting.asker.port = cx.src_port;
    sorting.asker.request_id = cx.request_id;
  end
  assign idle = !(cx2_v || in2_v || o2_v || f2_v || u2_v || tx_valid || k2_v || k4_v || v2_v || et2_v || op_valid);
endmodule
