// SPDX-License-Identifier: Apache-2.0
//
// Several lanes of the pipeline, each with frames and a memory of its own, and one cache: a key
// belongs to the store of one lane, whichever lane's frames name it. Registers are written in all
// lanes at once, and read of the lane `csr_lane`.
module mc_lanes
  import wc_pkg::*;
#(
    parameter int LANES = 8,     // a power of 2
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,
    parameter int KEY_MAX = DEFAULT_KEY_MAX,     // bytes
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX, // bytes
    parameter int HASH = HASH_TWO_CRCS,
    parameter int GATES = 12
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [15:0]                         udp_port,
    input  logic                                second_tick,
    input  logic [LANES-1:0][GATES-1:0]         hold,      // 0 except in tests
    input  logic [LANES-1:0]                    rx_valid,
    output logic [LANES-1:0]                    rx_ready,
    input  logic [LANES-1:0][63:0]              rx_data,
    input  logic [LANES-1:0][3:0]               rx_bytes,
    input  logic [LANES-1:0]                    rx_last,
    input  logic [LANES-1:0]                    rx_error,
    output logic [LANES-1:0]                    tx_valid,
    input  logic [LANES-1:0]                    tx_ready,
    output logic [LANES-1:0][63:0]              tx_data,
    output logic [LANES-1:0][3:0]               tx_bytes,
    output logic [LANES-1:0]                    tx_last,
    // Memories, as of mc_core.
    output logic [LANES-1:0]                    ar_valid,
    input  logic [LANES-1:0]                    ar_ready,
    output logic [LANES-1:0][31:0]              ar_addr,
    output logic [LANES-1:0][2:0]               ar_len,
    output logic [LANES-1:0][5:0]               ar_tag,
    input  logic [LANES-1:0]                    r_valid,
    input  logic [LANES-1:0][5:0]               r_tag,
    input  logic [LANES-1:0][127:0]             r_data,
    output logic [LANES-1:0]                    aw_valid,
    input  logic [LANES-1:0]                    aw_ready,
    output logic [LANES-1:0][31:0]              aw_addr,
    output logic [LANES-1:0][3:0]               aw_len,
    output logic [LANES-1:0][4:0]               aw_tag,
    output logic [LANES-1:0]                    w_valid,
    input  logic [LANES-1:0]                    w_ready,
    output logic [LANES-1:0][63:0]              w_data,
    output logic [LANES-1:0]                    w_last,
    input  logic [LANES-1:0]                    b_valid,
    input  logic [LANES-1:0][4:0]               b_tag,
    input  logic                                csr_write,
    input  logic [$clog2(LANES)-1:0]            csr_lane,
    input  logic [5:0]                          csr_address,
    input  logic [31:0]                         csr_write_data,
    output logic [31:0]                         csr_read_data,
    output logic                                idle
);
  localparam int ADDRESS_BITS = ROW_BITS + $clog2(WAYS) + 1 + bits_of_size(KEY_MAX, VALUE_MAX);  // of a word of 8 bytes
  if (LANES < 2 || LANES != 2 ** $clog2(LANES)) begin : g_lanes_wrong $error("LANES is a power of 2"); end
  // A lane is named by the upper bits of a row's hash.
  if (ROW_BITS > 32 - $clog2(LANES)) begin : g_lane_bits_wrong $error("the hash has no bits for ROW_BITS and LANES"); end
  if (HASH == HASH_ONE_CRC && (ROW_BITS > 16 || TAG_BITS > 16 - $clog2(LANES)))
    begin : g_one_crc_wrong $error("with HASH_ONE_CRC, ROW_BITS is 16 at most, and TAG_BITS and bits of a lane's number together too"); end
  // From and for the switch.
  /* verilator lint_off UNOPTFLAT */
  logic [LANES-1:0] o_v, o_r, k_v, k_r, v_v, v_r;
  hashed_t o[LANES];
  logic [63:0] k_d[LANES], v_d[LANES];
  logic [LANES-1:0] so_v, so_r, sk_v, sk_r, sv_v, sv_r;
  hashed_t so[LANES];
  logic [63:0] sk_d[LANES], sv_d[LANES];
  logic [LANES-1:0] rs_v, rs_r, rk_v, rk_r, rv_v, rv_r;
  result_t rs[LANES];
  logic [63:0] rk_d[LANES], rv_d[LANES];
  logic [LANES-1:0] fr_v, fr_r, fk_v, fk_r, fv_v, fv_r;
  result_t fr[LANES];
  logic [63:0] fk_d[LANES], fv_d[LANES];
  /* verilator lint_on UNOPTFLAT */
  logic switch_idle;
  lane_switch #(.LANES(LANES)) u_switch (
      .clk, .rst, .op_valid(o_v), .op_ready(o_r), .op(o), .key_valid(k_v), .key_ready(k_r),
      .key_data(k_d), .value_valid(v_v), .value_ready(v_r), .value_data(v_d), .s_op_valid(so_v),
      .s_op_ready(so_r), .s_op(so), .s_key_valid(sk_v), .s_key_ready(sk_r), .s_key_data(sk_d),
      .s_value_valid(sv_v), .s_value_ready(sv_r), .s_value_data(sv_d), .r_valid(rs_v), .r_ready(rs_r),
      .r(rs), .r_key_valid(rk_v), .r_key_ready(rk_r), .r_key_data(rk_d), .r_value_valid(rv_v),
      .r_value_ready(rv_r), .r_value_data(rv_d), .f_valid(fr_v), .f_ready(fr_r), .f_result(fr),
      .f_key_valid(fk_v), .f_key_ready(fk_r), .f_key_data(fk_d), .f_value_valid(fv_v),
      .f_value_ready(fv_r), .f_value_data(fv_d), .idle(switch_idle)
  );

  logic [31:0] read_data[LANES];
  logic [LANES-1:0] front_idle, store_idle, input_idle;
  for (genvar i = 0; i < LANES; i++) begin : g_lane
    // Results wait here for their front: the stores' next ones are then in front, for other fronts.
    logic fr2_v, fr2_r, fk2_v, fk2_r, fv2_v, fv2_r;
    result_t fr2;
    logic [63:0] fk2_d, fv2_d;
    fifo #(.W($bits(result_t)), .LOG(3)) f_result (
        .clk, .rst, .in_valid(fr_v[i]), .in_ready(fr_r[i]), .in_data(fr[i]), .out_valid(fr2_v), .out_ready(fr2_r),
        .out_data(fr2)
    );
    fifo #(.W(64), .LOG(4)) f_key_out (
        .clk, .rst, .in_valid(fk_v[i]), .in_ready(fk_r[i]), .in_data(fk_d[i]), .out_valid(fk2_v), .out_ready(fk2_r),
        .out_data(fk2_d)
    );
    fifo #(.W(64), .LOG(4)) f_value_out (
        .clk, .rst, .in_valid(fv_v[i]), .in_ready(fv_r[i]), .in_data(fv_d[i]), .out_valid(fv2_v), .out_ready(fv2_r),
        .out_data(fv2_d)
    );

    front_events_t front_events, front_events_too;
    store_events_t store_events;
    sorting_t sorting;  // for nic_cache
    mc_front #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX), .HASH(HASH)) u_front (
        .clk, .rst, .udp_port, .hold({hold[i][11:9], hold[i][6:0]}), .rx_valid(rx_valid[i]),
        .rx_ready(rx_ready[i]), .rx_data(rx_data[i]), .rx_bytes(rx_bytes[i]), .rx_last(rx_last[i]),
        .rx_error(rx_error[i]), .tx_valid(tx_valid[i]), .tx_ready(tx_ready[i]), .tx_data(tx_data[i]),
        .tx_bytes(tx_bytes[i]), .tx_last(tx_last[i]), .op_valid(o_v[i]), .op_ready(o_r[i]),
        .op(o[i].op), .op_row_hash(o[i].row_hash), .op_tag_hash(o[i].tag_hash), .key_valid(k_v[i]),
        .key_ready(k_r[i]), .key_data(k_d[i]), .value_valid(v_v[i]), .value_ready(v_r[i]),
        .value_data(v_d[i]), .result_valid(fr2_v), .result_ready(fr2_r), .result(fr2),
        .key_in_valid(fk2_v), .key_in_ready(fk2_r), .key_in_data(fk2_d),
        .value_in_valid(fv2_v), .value_in_ready(fv2_r), .value_in_data(fv2_d),
        .events(front_events), .events_too(front_events_too), .sorting, .idle(front_idle[i])
    );

    // What the switch gives the store.
    logic op_v, op_r, key_v, key_r, value_v, value_r;
    hashed_t op;
    logic [63:0] key, value;
    skid_buffer #(.W($bits(hashed_t))) s_op (
        .clk, .rst, .in_valid(so_v[i]), .in_ready(so_r[i]), .in_data(so[i]), .out_valid(op_v),
        .out_ready(op_r), .out_data(op)
    );
    packet_fifo #(.W(64), .LOG(9)) f_key (
        .clk, .rst, .in_valid(sk_v[i]), .in_ready(sk_r[i]), .in_data(sk_d[i]), .commit(1'b1),
        .abort(1'b0), .out_valid(key_v), .out_ready(key_r), .out_data(key)
    );
    packet_fifo #(.W(64), .LOG(8)) f_value (
        .clk, .rst, .in_valid(sv_v[i]), .in_ready(sv_r[i]), .in_data(sv_d[i]), .commit(1'b1),
        .abort(1'b0), .out_valid(value_v), .out_ready(value_r), .out_data(value)
    );
    assign input_idle[i] = !(op_v || key_v || value_v || fr2_v || fk2_v || fv2_v);

    logic set_clock, set_cas_valid, ready;
    logic [31:0] set_now, set_unix_start, now, unix_start;
    logic [63:0] set_cas;
    logic [39:0] generation;
    mc_store #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .WAYS(WAYS), .KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_store (
        .clk, .rst, .second_tick, .hold(hold[i][8:7]), .op_valid(op_v), .op_ready(op_r), .op(op.op),
        .row_hash(op.row_hash), .tag_hash(op.tag_hash), .key_valid(key_v), .key_ready(key_r),
        .key_data(key), .value_valid(value_v), .value_ready(value_r), .value_data(value),
        .result_valid(rs_v[i]), .result_ready(rs_r[i]), .result(rs[i]), .key_out_valid(rk_v[i]),
        .key_out_ready(rk_r[i]), .key_out_data(rk_d[i]), .value_out_valid(rv_v[i]),
        .value_out_ready(rv_r[i]), .value_out_data(rv_d[i]), .ar_valid(ar_valid[i]),
        .ar_ready(ar_ready[i]), .ar_addr(ar_addr[i][ADDRESS_BITS-2:0]), .ar_len(ar_len[i]),
        .ar_tag(ar_tag[i]), .r_valid(r_valid[i]), .r_tag(r_tag[i]), .r_data(r_data[i]),
        .aw_valid(aw_valid[i]), .aw_ready(aw_ready[i]), .aw_addr(aw_addr[i][ADDRESS_BITS-1:0]),
        .aw_len(aw_len[i]), .aw_tag(aw_tag[i]), .w_valid(w_valid[i]), .w_ready(w_ready[i]),
        .w_data(w_data[i]), .w_last(w_last[i]), .b_valid(b_valid[i]), .b_tag(b_tag[i]), .set_clock,
        .set_now, .set_unix_start, .set_cas_valid, .set_cas, .now, .unix_start, .generation, .ready,
        .events(store_events), .idle(store_idle[i])
    );
    assign ar_addr[i][31:ADDRESS_BITS-1] = '0;
    assign aw_addr[i][31:ADDRESS_BITS] = '0;
    csr #(.COUNTERS(16)) u_csr (
        .clk, .rst, .write(csr_write), .address(csr_address), .write_data(csr_write_data),
        .read_data(read_data[i]), .events({store_events, front_events}),
        .events_too({{$bits(store_events_t){1'b0}}, front_events_too}), .now, .unix_start,
        .generation(generation[31:0]), .ready, .set_clock, .set_now, .set_unix_start,
        .set_cas(set_cas_valid), .cas(set_cas)
    );
  end
  assign csr_read_data = read_data[csr_lane];
  assign idle = switch_idle && front_idle == '1 && store_idle == '1 && input_idle == '1;
endmodule
