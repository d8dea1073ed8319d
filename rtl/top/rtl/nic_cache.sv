// SPDX-License-Identifier: Apache-2.0
//
// A cache in the wire before a host that serves memcached's clients: gets of which there is a copy are
// answered here, all else goes on to the host, and what the host sends goes on to the wire. Copies are
// made of the host's replies to gets (docs/rtl.md says when, and what is asked of the host).
module nic_cache
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,
    parameter int KEY_MAX = DEFAULT_KEY_MAX,     // bytes
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX, // bytes
    parameter int HASH = HASH_TWO_CRCS,
    parameter int BUFFER_LOG = 11,   // of the beats of frames that are kept until it is known where they go
    parameter bit TESTED = 1'b1,     // without, `hold` has no effect, and no logic
    parameter int GATES = 12,        // streams that a test may hold back
    localparam int ADDRESS_BITS = ROW_BITS + $clog2(WAYS) + 1 + bits_of_size(KEY_MAX, VALUE_MAX)  // of a word of 8 bytes
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [15:0]         udp_port,
    input  logic [7:0]          fill_seconds,  // after which a copy expires; 0: never
    input  logic                second_tick,
    input  logic [GATES-1:0]    hold,          // 0 except in tests
    // The wire; as of mc_core.
    input  logic                rx_valid,
    output logic                rx_ready,
    input  logic [63:0]         rx_data,
    input  logic [3:0]          rx_bytes,
    input  logic                rx_last,
    input  logic                rx_error,
    output logic                tx_valid,
    input  logic                tx_ready,
    output logic [63:0]         tx_data,
    output logic [3:0]          tx_bytes,
    output logic                tx_last,
    // The host: frames to it, and from it.
    output logic                host_tx_valid,
    input  logic                host_tx_ready,
    output logic [63:0]         host_tx_data,
    output logic [3:0]          host_tx_bytes,
    output logic                host_tx_last,
    input  logic                host_rx_valid,
    output logic                host_rx_ready,
    input  logic [63:0]         host_rx_data,
    input  logic [3:0]          host_rx_bytes,
    input  logic                host_rx_last,
    // Memory and registers, as of mc_core.
    output logic                ar_valid,
    input  logic                ar_ready,
    output logic [ADDRESS_BITS-2:0]   ar_addr,
    output logic [2:0]          ar_len,
    output logic [5:0]          ar_tag,
    input  logic                r_valid,
    input  logic [5:0]          r_tag,
    input  logic [127:0]        r_data,
    output logic                aw_valid,
    input  logic                aw_ready,
    output logic [ADDRESS_BITS-1:0]   aw_addr,
    output logic [3:0]          aw_len,
    output logic [4:0]          aw_tag,
    output logic                w_valid,
    input  logic                w_ready,
    output logic [63:0]         w_data,
    output logic                w_last,
    input  logic                b_valid,
    input  logic [4:0]          b_tag,
    input  logic                csr_write,
    input  logic [5:0]          csr_address,
    input  logic [31:0]         csr_write_data,
    output logic [31:0]         csr_read_data,
    output logic                idle          // no frame and no operation is anywhere in it
);
  // --- Frames of the wire, to the core and to where they wait.
  logic c_valid, c_ready, verdict_valid, verdict_answered, flush_valid, flush_done, port_idle;
  sorting_t sorting;
  nic_events_t nic_events;
  logic m_valid, m_ready, m_last;
  logic [63:0] m_data;
  logic [3:0] m_bytes;
  miss_port #(.LOG(BUFFER_LOG)) u_miss_port (
      .clk, .rst, .in_valid(rx_valid), .in_ready(rx_ready), .in_data(rx_data), .in_bytes(rx_bytes), .in_last(rx_last),
      .in_error(rx_error), .core_valid(c_valid), .core_ready(c_ready), .sorting, .verdict_valid, .verdict_answered,
      .flush_valid, .flush_done, .out_valid(m_valid), .out_ready(m_ready), .out_data(m_data), .out_bytes(m_bytes),
      .out_last(m_last), .answers(nic_events.answered), .forwards(nic_events.forwarded), .idle(port_idle)
  );
  skid_buffer #(.W(69)) s_host (
      .clk, .rst, .in_valid(m_valid), .in_ready(m_ready), .in_data({m_last, m_bytes, m_data}), .out_valid(host_tx_valid),
      .out_ready(host_tx_ready), .out_data({host_tx_last, host_tx_bytes, host_tx_data})
  );

  // --- The core.
  hashed_t wo, so;
  logic wo_v, wo_r, wk_v, wk_r, wv_v, wv_r, so_v, so_r, sk_v, sk_r, sv_v, sv_r;
  logic [63:0] wk, wv, sk, sv;
  result_t fr, sr;
  logic fr_v, fr_r, fk_v, fk_r, fv_v, fv_r, sr_v, sr_r, rk_v, rk_r, rv_v, rv_r;
  logic [63:0] fk, fv, rk, rv;
  front_events_t front_events, front_events_too;
  store_events_t store_events;
  if (HASH == HASH_ONE_CRC && (ROW_BITS > 16 || TAG_BITS > 16)) begin : g_one_crc_wrong $error("with HASH_ONE_CRC, ROW_BITS and TAG_BITS are 16 at most"); end
  logic [GATES-1:0] held;
  assign held = TESTED ? hold : '0;
  logic front_idle, store_idle, policy_idle, fill_idle;
  logic a_v, a_r, a_last;
  logic [63:0] a_d;
  logic [3:0] a_b;
  mc_front #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX), .HASH(HASH)) u_front (
      .clk, .rst, .udp_port, .hold({held[11:9], held[6:0]}), .rx_valid(c_valid), .rx_ready(c_ready), .rx_data, .rx_bytes,
      .rx_last, .rx_error, .tx_valid(a_v), .tx_ready(a_r), .tx_data(a_d), .tx_bytes(a_b), .tx_last(a_last),
      .op_valid(wo_v), .op_ready(wo_r), .op(wo.op), .op_row_hash(wo.row_hash), .op_tag_hash(wo.tag_hash),
      .key_valid(wk_v), .key_ready(wk_r), .key_data(wk), .value_valid(wv_v), .value_ready(wv_r), .value_data(wv),
      .result_valid(fr_v), .result_ready(fr_r), .result(fr), .key_in_valid(fk_v), .key_in_ready(fk_r), .key_in_data(fk),
      .value_in_valid(fv_v), .value_in_ready(fv_r), .value_in_data(fv), .events(front_events),
      .events_too(front_events_too), .sorting, .idle(front_idle)
  );
  hashed_t fo;
  asker_t fo_asker;
  logic fo_v, fo_r, fo_other, fok_v, fok_r, fov_v, fov_r;
  logic [63:0] fok, fov;
  copy_policy u_policy (
      .clk, .rst, .tick(second_tick), .asker_valid(sorting.udp_passed), .asker(sorting.asker), .w_op_valid(wo_v),
      .w_op_ready(wo_r), .w_op(wo), .w_key_valid(wk_v), .w_key_ready(wk_r), .w_key(wk), .w_value_valid(wv_v),
      .w_value_ready(wv_r), .w_value(wv), .f_op_valid(fo_v), .f_op_ready(fo_r), .f_op(fo), .f_asker(fo_asker),
      .f_key_valid(fok_v), .f_key_ready(fok_r), .f_key(fok), .f_value_valid(fov_v), .f_value_ready(fov_r),
      .f_value(fov), .f_other(fo_other), .flush_valid, .flush_done, .op_valid(so_v), .op_ready(so_r), .op(so),
      .key_valid(sk_v), .key_ready(sk_r), .key(sk), .value_valid(sv_v), .value_ready(sv_r), .value(sv),
      .s_result_valid(sr_v), .s_result_ready(sr_r), .s_result(sr), .s_key_valid(rk_v), .s_key_ready(rk_r), .s_key(rk),
      .s_value_valid(rv_v), .s_value_ready(rv_r), .s_value(rv), .result_valid(fr_v), .result_ready(fr_r), .result(fr),
      .key_out_valid(fk_v), .key_out_ready(fk_r), .key_out(fk), .value_out_valid(fv_v), .value_out_ready(fv_r),
      .value_out(fv), .verdict_valid, .verdict_answered, .filled(nic_events.filled), .fill_dead(nic_events.fill_dead),
      .flushed(nic_events.flushed), .idle(policy_idle)
  );
  logic set_clock, set_cas_valid, ready;
  logic [31:0] set_now, set_unix_start, now, unix_start;
  logic [63:0] set_cas;
  logic [39:0] generation;
  mc_store #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .WAYS(WAYS), .KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_store (
      .clk, .rst, .second_tick, .hold(held[8:7]), .op_valid(so_v), .op_ready(so_r), .op(so.op),
      .row_hash(so.row_hash), .tag_hash(so.tag_hash), .key_valid(sk_v), .key_ready(sk_r), .key_data(sk),
      .value_valid(sv_v), .value_ready(sv_r), .value_data(sv), .result_valid(sr_v), .result_ready(sr_r), .result(sr),
      .key_out_valid(rk_v), .key_out_ready(rk_r), .key_out_data(rk), .value_out_valid(rv_v), .value_out_ready(rv_r),
      .value_out_data(rv), .ar_valid, .ar_ready, .ar_addr, .ar_len, .ar_tag, .r_valid, .r_tag, .r_data, .aw_valid,
      .aw_ready, .aw_addr, .aw_len, .aw_tag, .w_valid, .w_ready, .w_data, .w_last, .b_valid, .b_tag, .set_clock,
      .set_now, .set_unix_start, .set_cas_valid, .set_cas, .now, .unix_start, .generation, .ready,
      .events(store_events), .idle(store_idle)
  );

  // --- Frames of the host, and replies, to the wire.
  fill_reader #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX), .HASH(HASH)) u_fill_reader (
      .clk, .rst, .udp_port, .fill_seconds, .in_valid(host_rx_valid && host_rx_ready), .in_data(host_rx_data),
      .in_bytes(host_rx_bytes), .in_last(host_rx_last), .op_valid(fo_v), .op_ready(fo_r), .op(fo), .asker(fo_asker),
      .other(fo_other), .key_valid(fok_v), .key_ready(fok_r), .key(fok), .value_valid(fov_v), .value_ready(fov_r),
      .value(fov), .idle(fill_idle)
  );
  frame_mux #(.W(68)) u_mux (
      .clk, .rst, .a_valid(a_v), .a_ready(a_r), .a_data({a_b, a_d}), .a_last, .b_valid(host_rx_valid),
      .b_ready(host_rx_ready), .b_data({host_rx_bytes, host_rx_data}), .b_last(host_rx_last), .out_valid(tx_valid),
      .out_ready(tx_ready), .out_data({tx_bytes, tx_data}), .out_last(tx_last)
  );

  csr #(.COUNTERS(21)) u_csr (
      .clk, .rst, .write(csr_write), .address(csr_address), .write_data(csr_write_data),
      .read_data(csr_read_data), .events({nic_events, store_events, front_events}),
      .events_too({{$bits(nic_events_t) + $bits(store_events_t){1'b0}}, front_events_too}), .now, .unix_start,
      .generation(generation[31:0]), .ready, .set_clock, .set_now, .set_unix_start, .set_cas(set_cas_valid), .cas(set_cas)
  );
  assign idle = front_idle && store_idle && policy_idle && fill_idle && port_idle && !host_tx_valid;
endmodule
