// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: Ethernet frames in, Ethernet frames out, and items in a memory behind tagged
// bursts. docs/rtl.md has the picture.
module mc_core
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int GATES = 12   // streams that a test may hold back
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [15:0]         udp_port,
    input  logic                second_tick,
    input  logic [GATES-1:0]    hold,      // 0 except in tests
    // Frames without their check sequence. All beats but the last of a frame have 8 bytes.
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
    // Memory. A beat has 16 bytes in the direction of reads and 8 in that of writes; addresses are in
    // beats. A burst does not cross 64 bytes. Answers come in any order.
    output logic                ar_valid,
    input  logic                ar_ready,
    output logic [ROW_BITS+10:0] ar_addr,
    output logic [2:0]          ar_len,
    output logic [5:0]          ar_tag,
    input  logic                r_valid,
    input  logic [5:0]          r_tag,
    input  logic [127:0]        r_data,
    output logic                aw_valid,
    input  logic                aw_ready,
    output logic [ROW_BITS+11:0] aw_addr,
    output logic [3:0]          aw_len,
    output logic [4:0]          aw_tag,
    output logic                w_valid,
    input  logic                w_ready,
    output logic [63:0]         w_data,
    output logic                w_last,
    input  logic                b_valid,
    input  logic [4:0]          b_tag,
    // Registers (csr).
    input  logic                csr_write,
    input  logic [5:0]          csr_address,
    input  logic [31:0]         csr_write_data,
    output logic [31:0]         csr_read_data,
    output logic                idle          // no operation is anywhere in the pipeline
);
  localparam int HZ = 5;
  localparam int SLOT_BITS = ROW_BITS + 4;

  // --- Ethernet, IP, UDP.
  logic ec_v, ec_r, ec_v6;
  eth_ctx_t ec;
  logic l3_v, l3_r, l3_last, l3_err;
  logic [63:0] l3_d;
  logic [3:0] l3_b;
  logic d_eth_nfu, d_eth_trunc, d_eth_unsup;
  eth_rx u_eth_rx (
      .clk, .rst, .in_valid(rx_valid), .in_ready(rx_ready), .in_data(rx_data), .in_bytes(rx_bytes),
      .in_last(rx_last), .in_error(rx_error), .ctx_valid(ec_v), .ctx_ready(ec_r), .ctx(ec), .ctx_v6(ec_v6),
      .out_valid(l3_v), .out_ready(l3_r), .out_data(l3_d), .out_bytes(l3_b), .out_last(l3_last),
      .out_error(l3_err), .drop_not_for_us(d_eth_nfu), .drop_truncated(d_eth_trunc),
      .drop_unsupported(d_eth_unsup)
  );
  logic ec2_v, ec2_r, ec2_v6;
  eth_ctx_t ec2;
  fifo #(.W($bits(eth_ctx_t) + 1), .LOG(2)) f_eth_ctx (
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
  logic e_pass, e_nfu, e_trunc, e_sum, e_frag, e_unsup, e_mal;
  udp_rx u_udp_rx (
      .clk, .rst, .udp_port, .eth_valid(ec2_v), .eth_ready(ec2_r), .eth(ec2), .eth_v6(ec2_v6),
      .in_valid(l3g_v), .in_ready(l3g_r), .in_data(l3s_d), .in_bytes(l3s_b), .in_last(l3s_last),
      .in_error(l3s_err), .ctx_valid(cx_v), .ctx_ready(cx_r), .ctx(cx), .info_valid(in_v),
      .info_ready(in_r), .info, .out_valid(p_v), .out_ready(p_r), .out_data(p_d), .out_bytes(p_b),
      .out_last(p_last), .passed(e_pass), .drop_not_for_us(e_nfu), .drop_truncated(e_trunc),
      .drop_checksum(e_sum), .drop_fragment(e_frag), .drop_unsupported(e_unsup), .drop_malformed(e_mal)
  );
  // Contexts wait here for their replies, which come in order.
  packet_fifo #(.W($bits(ctx_t)), .LOG(7)) f_ctx (
      .clk, .rst, .in_valid(cx_v), .in_ready(cx_r), .in_data(cx), .commit(1'b1), .abort(1'b0),
      .out_valid(cx2_v), .out_ready(cx2_r), .out_data(cx2)
  );
  fifo #(.W($bits(info_t)), .LOG(5)) f_info (
      .clk, .rst, .in_valid(in_v), .in_ready(in_r), .in_data(info), .out_valid(in2_v),
      .out_ready(in2_r), .out_data(info2)
  );
  stream_gate g1 (.clk, .rst, .hold(hold[1]), .in_valid(p_v), .in_ready(p_r), .out_valid(pg_v), .out_ready(pg_r));
  stream_gate g2 (.clk, .rst, .hold(hold[2]), .in_valid(in2_v), .in_ready(in2_r), .out_valid(in2g_v), .out_ready(in2g_r));

  // --- Requests to operations.
  logic o_v, o_r, k_v, k_r, v_v, v_r;
  meta_t o;
  logic [63:0] k_d, v_d;
  mc_parse u_parse (
      .clk, .rst, .info_valid(in2g_v), .info_ready(in2g_r), .info(info2), .in_valid(pg_v),
      .in_ready(pg_r), .in_data(p_d), .in_bytes(p_b), .in_last(p_last), .op_valid(o_v),
      .op_ready(o_r), .op(o), .key_valid(k_v), .key_ready(k_r), .key_data(k_d), .value_valid(v_v),
      .value_ready(v_r), .value_data(v_d)
  );
  logic o2_v, o2_r, o2g_v, o2g_r, k2_v, k2_r, k2g_v, k2g_r, v2_v, v2_r, v2g_v, v2g_r;
  meta_t o2;
  logic [63:0] k2_d, v2_d;
  fifo #(.W($bits(meta_t)), .LOG(2)) f_op (
      .clk, .rst, .in_valid(o_v), .in_ready(o_r), .in_data(o), .out_valid(o2_v), .out_ready(o2_r), .out_data(o2)
  );
  fifo #(.W(64), .LOG(6)) f_key (
      .clk, .rst, .in_valid(k_v), .in_ready(k_r), .in_data(k_d), .out_valid(k2_v), .out_ready(k2_r), .out_data(k2_d)
  );
  packet_fifo #(.W(64), .LOG(10)) f_value (
      .clk, .rst, .in_valid(v_v), .in_ready(v_r), .in_data(v_d), .commit(1'b1), .abort(1'b0),
      .out_valid(v2_v), .out_ready(v2_r), .out_data(v2_d)
  );
  stream_gate g3 (.clk, .rst, .hold(hold[3]), .in_valid(o2_v), .in_ready(o2_r), .out_valid(o2g_v), .out_ready(o2g_r));
  stream_gate g4 (.clk, .rst, .hold(hold[4]), .in_valid(k2_v), .in_ready(k2_r), .out_valid(k2g_v), .out_ready(k2g_r));
  stream_gate g5 (.clk, .rst, .hold(hold[5]), .in_valid(v2_v), .in_ready(v2_r), .out_valid(v2g_v), .out_ready(v2g_r));

  // --- Hash and index.
  logic hs_v, hs_r, k3_v, k3_r;
  meta_t hs;
  logic [31:0] hs_row, hs_tag;
  logic [63:0] k3_d;
  key_hash u_hash (
      .clk, .rst, .op_valid(o2g_v), .op_ready(o2g_r), .op(o2), .key_valid(k2g_v), .key_ready(k2g_r),
      .key_data(k2_d), .out_valid(hs_v), .out_ready(hs_r), .out_op(hs), .out_row_hash(hs_row),
      .out_tag_hash(hs_tag), .out_key_valid(k3_v), .out_key_ready(k3_r), .out_key_data(k3_d)
  );
  logic hr_v, hr_r, h2_v, h2_r;
  meta_t h2;
  logic [31:0] h2_row, h2_tag;
  assign hr_v = hs_v;
  assign hs_r = hr_r;
  skid_buffer #(.W($bits(meta_t) + 64)) f_hashed (
      .clk, .rst, .in_valid(hr_v), .in_ready(hr_r), .in_data({hs, hs_row, hs_tag}), .out_valid(h2_v),
      .out_ready(h2_r), .out_data({h2, h2_row, h2_tag})
  );
  logic k4_v, k4_r, k4g_v, k4g_r;
  logic [63:0] k4_d;
  packet_fifo #(.W(64), .LOG(9)) f_key2 (
      .clk, .rst, .in_valid(k3_v), .in_ready(k3_r), .in_data(k3_d), .commit(1'b1), .abort(1'b0),
      .out_valid(k4_v), .out_ready(k4_r), .out_data(k4_d)
  );
  stream_gate g6 (.clk, .rst, .hold(hold[6]), .in_valid(k4_v), .in_ready(k4_r), .out_valid(k4g_v), .out_ready(k4g_r));

  typedef struct packed {
    meta_t op;
    logic [ROW_BITS-1:0] row;
    logic [TAG_BITS-1:0] tag;
    logic found;
    logic [2:0] way;
    logic half;
    logic [7:0] beats;
    logic [HZ-1:0] hazard;
  } looked_t;
  looked_t lk, lk2;
  logic lk_v, lk_r, lk2_v, lk2_r, lk2g_v, lk2g_r;
  logic rd_v, rd_r;
  logic [SLOT_BITS-1:0] rd_slot;
  logic [7:0] rd_beats;
  logic up_v, up_live, up_half, to_v, fa_v, fb_v, ht_ready, stalled;
  logic [7:0] up_beats;
  logic [HZ-1:0] fb_id;
  ht_lookup #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .HAZARDS_LOG(HZ)) u_lookup (
      .clk, .rst, .ready(ht_ready), .op_valid(h2_v), .op_ready(h2_r), .op(h2), .row_hash(h2_row),
      .tag_hash(h2_tag), .out_valid(lk_v), .out_ready(lk_r), .out_op(lk.op), .out_row(lk.row),
      .out_tag(lk.tag), .out_found(lk.found), .out_way(lk.way), .out_half(lk.half),
      .out_beats(lk.beats), .out_hazard(lk.hazard), .read_valid(rd_v), .read_ready(rd_r),
      .read_slot(rd_slot), .read_beats(rd_beats), .update_valid(up_v), .update_row(lk2.row),
      .update_way(lk2.way), .update_live(up_live), .update_tag(lk2.tag), .update_half(up_half),
      .update_beats(up_beats), .touch_valid(to_v), .touch_row(lk2.row), .touch_way(lk2.way),
      .free_a_valid(fa_v), .free_a_id(lk2.hazard), .free_b_valid(fb_v), .free_b_id(fb_id), .stalled
  );
  packet_fifo #(.W($bits(looked_t)), .LOG(6)) f_looked (
      .clk, .rst, .in_valid(lk_v), .in_ready(lk_r), .in_data(lk), .commit(1'b1), .abort(1'b0),
      .out_valid(lk2_v), .out_ready(lk2_r), .out_data(lk2)
  );
  stream_gate g7 (.clk, .rst, .hold(hold[7]), .in_valid(lk2_v), .in_ready(lk2_r), .out_valid(lk2g_v), .out_ready(lk2g_r));

  // --- Memory.
  logic rq_v, rq_r;
  logic [SLOT_BITS-1:0] rq_slot;
  logic [7:0] rq_beats;
  fifo #(.W(SLOT_BITS + 8), .LOG(3)) f_read (
      .clk, .rst, .in_valid(rd_v), .in_ready(rd_r), .in_data({rd_slot, rd_beats}), .out_valid(rq_v),
      .out_ready(rq_r), .out_data({rq_slot, rq_beats})
  );
  logic it_v, it_r, itg_v, itg_r, it_two;
  logic [127:0] it_d;
  item_reader #(.SLOT_BITS(SLOT_BITS)) u_reader (
      .clk, .rst, .req_valid(rq_v), .req_ready(rq_r), .req_slot(rq_slot), .req_words(rq_beats),
      .ar_valid, .ar_ready, .ar_addr, .ar_len, .ar_tag, .r_valid, .r_tag, .r_data,
      .out_valid(it_v), .out_ready(it_r), .out_data(it_d), .out_two(it_two)
  );
  stream_gate g8 (.clk, .rst, .hold(hold[8]), .in_valid(it_v), .in_ready(it_r), .out_valid(itg_v), .out_ready(itg_r));
  logic wq_v, wq_r, wq2_v, wq2_r, wd_v, wd_r, wd2_v, wd2_r;
  logic [SLOT_BITS-1:0] wq_slot, wq2_slot;
  logic [7:0] wq_beats, wq2_beats;
  logic [HZ-1:0] wq_hz, wq2_hz;
  logic [63:0] wd, wd2;
  fifo #(.W(SLOT_BITS + 8 + HZ), .LOG(3)) f_wreq (
      .clk, .rst, .in_valid(wq_v), .in_ready(wq_r), .in_data({wq_slot, wq_beats, wq_hz}),
      .out_valid(wq2_v), .out_ready(wq2_r), .out_data({wq2_slot, wq2_beats, wq2_hz})
  );
  fifo #(.W(64), .LOG(5)) f_wdata (
      .clk, .rst, .in_valid(wd_v), .in_ready(wd_r), .in_data(wd), .out_valid(wd2_v), .out_ready(wd2_r), .out_data(wd2)
  );
  item_writer #(.SLOT_BITS(SLOT_BITS), .HAZARDS_LOG(HZ)) u_writer (
      .clk, .rst, .req_valid(wq2_v), .req_ready(wq2_r), .req_slot(wq2_slot),
      .req_beats(wq2_beats), .req_hazard(wq2_hz), .data_valid(wd2_v), .data_ready(wd2_r), .data(wd2),
      .aw_valid, .aw_ready, .aw_addr, .aw_len, .aw_tag, .w_valid, .w_ready, .w_data, .w_last,
      .b_valid, .b_tag, .free_valid(fb_v), .free_id(fb_id)
  );

  // --- Execution.
  logic [31:0] now, unix_start;
  logic [39:0] generation;
  logic rs_v, rs_r, rs2_v, rs2_r, rs2g_v, rs2g_r, ko_v, ko_r, ko2_v, ko2_r, vo_v, vo_r, vo2_v, vo2_r, vo2g_v, vo2g_r;
  result_t rs, rs2;
  logic [63:0] ko_d, ko2_d, vo_d, vo2_d;
  logic flush_v, set_cas, c_hit, c_miss, c_store, c_other;
  logic [63:0] cas;
  key_check #(.ROW_BITS(ROW_BITS), .HAZARDS_LOG(HZ)) u_check (
      .clk, .rst, .op_valid(lk2g_v), .op_ready(lk2g_r), .op(lk2.op), .row(lk2.row),
      .found(lk2.found), .way(lk2.way), .half(lk2.half), .beats(lk2.beats), .hazard(lk2.hazard),
      .key_valid(k4g_v), .key_ready(k4g_r), .key_data(k4_d), .value_valid(v2g_v), .value_ready(v2g_r),
      .value_data(v2_d), .item_valid(itg_v), .item_ready(itg_r), .item_data(it_d), .item_two(it_two),
      .result_valid(rs_v), .result_ready(rs_r), .result(rs), .key_out_valid(ko_v), .key_out_ready(ko_r),
      .key_out_data(ko_d), .value_out_valid(vo_v), .value_out_ready(vo_r), .value_out_data(vo_d),
      .write_valid(wq_v), .write_ready(wq_r), .write_slot(wq_slot),
      .write_beats(wq_beats), .write_hazard(wq_hz), .data_valid(wd_v), .data_ready(wd_r), .data(wd),
      .update_valid(up_v), .update_live(up_live), .update_beats(up_beats), .update_half(up_half),
      .touch_valid(to_v), .free_valid(fa_v), .now, .unix_start, .generation, .flush_valid(flush_v),
      .set_cas_valid(set_cas), .set_cas(cas), .counts_hit(c_hit), .counts_miss(c_miss),
      .counts_store(c_store), .counts_other_key(c_other)
  );
  fifo #(.W($bits(result_t)), .LOG(3)) f_result (
      .clk, .rst, .in_valid(rs_v), .in_ready(rs_r), .in_data(rs), .out_valid(rs2_v), .out_ready(rs2_r), .out_data(rs2)
  );
  fifo #(.W(64), .LOG(6)) f_keyout (
      .clk, .rst, .in_valid(ko_v), .in_ready(ko_r), .in_data(ko_d), .out_valid(ko2_v), .out_ready(ko2_r), .out_data(ko2_d)
  );
  fifo #(.W(64), .LOG(4)) f_valueout (
      .clk, .rst, .in_valid(vo_v), .in_ready(vo_r), .in_data(vo_d), .out_valid(vo2_v), .out_ready(vo2_r), .out_data(vo2_d)
  );
  stream_gate g9 (.clk, .rst, .hold(hold[9]), .in_valid(rs2_v), .in_ready(rs2_r), .out_valid(rs2g_v), .out_ready(rs2g_r));
  stream_gate g10 (.clk, .rst, .hold(hold[10]), .in_valid(vo2_v), .in_ready(vo2_r), .out_valid(vo2g_v), .out_ready(vo2g_r));
  logic clock_set;
  logic [31:0] clock_now, clock_start;
  expiry_clock u_clock (
      .clk, .rst, .tick(second_tick), .set_valid(clock_set), .set_now(clock_now),
      .set_unix_start(clock_start), .flush_valid(flush_v), .flush_exptime(lk2.op.exptime), .now,
      .unix_start, .generation
  );

  // --- Replies.
  logic f_v, f_r, f_last, f2_v, f2_r, f2_last, f2g_v, f2g_r;
  logic [63:0] f_d, f2_d;
  logic [3:0] f_b, f2_b;
  mc_format u_format (
      .clk, .rst, .result_valid(rs2g_v), .result_ready(rs2g_r), .result(rs2), .key_valid(ko2_v),
      .key_ready(ko2_r), .key_data(ko2_d), .value_valid(vo2g_v), .value_ready(vo2g_r),
      .value_data(vo2_d), .out_valid(f_v), .out_ready(f_r), .out_data(f_d), .out_bytes(f_b), .out_last(f_last)
  );
  skid_buffer #(.W(69)) s_reply (
      .clk, .rst, .in_valid(f_v), .in_ready(f_r), .in_data({f_last, f_b, f_d}), .out_valid(f2_v),
      .out_ready(f2_r), .out_data({f2_last, f2_b, f2_d})
  );
  stream_gate g11 (.clk, .rst, .hold(hold[11]), .in_valid(f2_v), .in_ready(f2_r), .out_valid(f2g_v), .out_ready(f2g_r));
  logic et_v, et_r, et_v6, et2_v, et2_r, et2_v6, u_v, u_r, u_last, u2_v, u2_r, u2_last, reply_dropped;
  eth_ctx_t et, et2;
  logic [11:0] et_bytes, et2_bytes;
  logic [63:0] u_d, u2_d;
  logic [3:0] u_b, u2_b;
  udp_tx u_udp_tx (
      .clk, .rst, .ctx_valid(cx2_v), .ctx_ready(cx2_r), .ctx(cx2), .in_valid(f2g_v), .in_ready(f2g_r),
      .in_data(f2_d), .in_bytes(f2_b), .in_last(f2_last), .eth_valid(et_v), .eth_ready(et_r), .eth(et),
      .eth_v6(et_v6), .eth_bytes(et_bytes), .out_valid(u_v), .out_ready(u_r), .out_data(u_d),
      .out_bytes(u_b), .out_last(u_last), .dropped(reply_dropped)
  );
  fifo #(.W($bits(eth_ctx_t) + 13), .LOG(2)) f_eth_tx (
      .clk, .rst, .in_valid(et_v), .in_ready(et_r), .in_data({et_v6, et_bytes, et}), .out_valid(et2_v),
      .out_ready(et2_r), .out_data({et2_v6, et2_bytes, et2})
  );
  skid_buffer #(.W(69)) s_udp (
      .clk, .rst, .in_valid(u_v), .in_ready(u_r), .in_data({u_last, u_b, u_d}), .out_valid(u2_v),
      .out_ready(u2_r), .out_data({u2_last, u2_b, u2_d})
  );
  logic t_v, t_r, t_last;
  logic [63:0] t_d;
  logic [3:0] t_b;
  eth_tx u_eth_tx (
      .clk, .rst, .eth_valid(et2_v), .eth_ready(et2_r), .eth(et2), .eth_v6(et2_v6), .eth_bytes(et2_bytes),
      .in_valid(u2_v), .in_ready(u2_r), .in_data(u2_d), .in_bytes(u2_b), .in_last(u2_last),
      .out_valid(t_v), .out_ready(t_r), .out_data(t_d), .out_bytes(t_b), .out_last(t_last)
  );
  skid_buffer #(.W(69)) s_tx (
      .clk, .rst, .in_valid(t_v), .in_ready(t_r), .in_data({t_last, t_b, t_d}), .out_valid(tx_valid),
      .out_ready(tx_ready), .out_data({tx_last, tx_bytes, tx_data})
  );

  // --- Registers.
  csr #(.COUNTERS(16)) u_csr (
      .clk, .rst, .write(csr_write), .address(csr_address), .write_data(csr_write_data),
      .read_data(csr_read_data),
      .events({c_other, stalled, c_store, c_miss, c_hit, reply_dropped, tx_valid && tx_ready && tx_last,
               cx2_v && cx2_r, e_mal, e_unsup, e_frag, e_sum, e_trunc, e_nfu,
               e_pass, rx_valid && rx_ready && rx_last}),
      .events_too({9'd0, d_eth_unsup, 2'd0, d_eth_trunc, d_eth_nfu, 2'd0}),
      .now, .unix_start, .generation(generation[31:0]), .ready(ht_ready), .set_clock(clock_set),
      .set_now(clock_now), .set_unix_start(clock_start), .set_cas, .cas
  );
  assign idle = !(cx2_v || in2_v || o2_v || lk2_v || rs2_v || f2_v || u2_v || tx_valid || k2_v || k4_v ||
                  v2_v || it_v || ko2_v || vo2_v || et2_v || wq2_v || wd2_v);
endmodule
