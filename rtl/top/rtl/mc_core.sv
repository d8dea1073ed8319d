// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: Ethernet frames in, Ethernet frames out, and items in a memory behind tagged
// bursts. docs/rtl.md has the picture.
module mc_core
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,
    parameter int KEY_MAX = DEFAULT_KEY_MAX,     // bytes
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX, // bytes
    parameter int HASH = HASH_TWO_CRCS,
    parameter bit TESTED = 1'b1,   // without, `hold` has no effect, and no logic
    parameter int GATES = 12,  // streams that a test may hold back
    localparam int ADDRESS_BITS = ROW_BITS + $clog2(WAYS) + 1 + bits_of_size(KEY_MAX, VALUE_MAX)  // of a word of 8 bytes
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
    // Registers (csr).
    input  logic                csr_write,
    input  logic [5:0]          csr_address,
    input  logic [31:0]         csr_write_data,
    output logic [31:0]         csr_read_data,
    output logic                idle          // no operation is anywhere in the pipeline
);
  if (HASH == HASH_ONE_CRC && (ROW_BITS > 16 || TAG_BITS > 16)) begin : g_one_crc_wrong $error("with HASH_ONE_CRC, ROW_BITS and TAG_BITS are 16 at most"); end
  logic [GATES-1:0] held;
  assign held = TESTED ? hold : '0;
  // Operations, and their results.
  logic o_v, o_r, k_v, k_r, v_v, v_r, rs_v, rs_r, ko_v, ko_r, vo_v, vo_r;
  meta_t o;
  logic [31:0] o_row, o_tag;
  logic [63:0] k_d, v_d, ko_d, vo_d;
  result_t rs;
  front_events_t front_events, front_events_too;
  store_events_t store_events;
  logic front_idle, store_idle;
  sorting_t sorting;  // for nic_cache
  mc_front #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX), .HASH(HASH)) u_front (
      .clk, .rst, .udp_port, .hold({held[11:9], held[6:0]}), .rx_valid, .rx_ready, .rx_data, .rx_bytes, .rx_last,
      .rx_error, .tx_valid, .tx_ready, .tx_data, .tx_bytes, .tx_last, .op_valid(o_v), .op_ready(o_r),
      .op(o), .op_row_hash(o_row), .op_tag_hash(o_tag), .key_valid(k_v), .key_ready(k_r),
      .key_data(k_d), .value_valid(v_v), .value_ready(v_r), .value_data(v_d), .result_valid(rs_v),
      .result_ready(rs_r), .result(rs), .key_in_valid(ko_v), .key_in_ready(ko_r), .key_in_data(ko_d),
      .value_in_valid(vo_v), .value_in_ready(vo_r), .value_in_data(vo_d), .events(front_events),
      .events_too(front_events_too), .sorting, .idle(front_idle)
  );

  logic set_clock, set_cas_valid, ready;
  logic [31:0] set_now, set_unix_start, now, unix_start;
  logic [63:0] set_cas;
  logic [39:0] generation;
  mc_store #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .WAYS(WAYS), .KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_store (
      .clk, .rst, .second_tick, .hold(held[8:7]), .op_valid(o_v), .op_ready(o_r), .op(o),
      .row_hash(o_row), .tag_hash(o_tag), .key_valid(k_v), .key_ready(k_r), .key_data(k_d),
      .value_valid(v_v), .value_ready(v_r), .value_data(v_d), .result_valid(rs_v),
      .result_ready(rs_r), .result(rs), .key_out_valid(ko_v), .key_out_ready(ko_r),
      .key_out_data(ko_d), .value_out_valid(vo_v), .value_out_ready(vo_r), .value_out_data(vo_d),
      .ar_valid, .ar_ready, .ar_addr, .ar_len, .ar_tag, .r_valid, .r_tag, .r_data, .aw_valid, .aw_ready,
      .aw_addr, .aw_len, .aw_tag, .w_valid, .w_ready, .w_data, .w_last, .b_valid, .b_tag, .set_clock,
      .set_now, .set_unix_start, .set_cas_valid, .set_cas, .now, .unix_start, .generation, .ready,
      .events(store_events), .idle(store_idle)
  );

  csr #(.COUNTERS(16)) u_csr (
      .clk, .rst, .write(csr_write), .address(csr_address), .write_data(csr_write_data),
      .read_data(csr_read_data), .events({store_events, front_events}),
      .events_too({{$bits(store_events_t){1'b0}}, front_events_too}), .now, .unix_start,
      .generation(generation[31:0]), .ready, .set_clock, .set_now, .set_unix_start,
      .set_cas(set_cas_valid), .cas(set_cas)
  );
  assign idle = front_idle && store_idle;
endmodule
