// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: Ethernet frames in, Ethernet frames out, and items in a memory behind tagged
// bursts. docs/rtl.md has the picture. With HOST, frames that the core does not answer go to a host, and what
// the host sends goes out.
module mc_core
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,
    parameter int KEY_MAX = DEFAULT_KEY_MAX,     // bytes
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX, // bytes
    parameter int HASH = HASH_TWO_CRCS,
    parameter int HOST = 0,        // 1: there is a host
    parameter int BUFFER_LOG = 11, // with HOST: of the beats of frames that are kept until it is known where they go
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
    // The host; without HOST nothing goes to it, and nothing of it is taken.
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
  logic front_idle, store_idle, host_idle;
  sorting_t sorting;
  // Frames to the front, and its replies.
  logic c_valid, c_ready, a_valid, a_ready, a_last;
  logic [63:0] a_data;
  logic [3:0] a_bytes;
  mc_front #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX), .HASH(HASH)) u_front (
      .clk, .rst, .udp_port, .hold({held[11:9], held[6:0]}), .rx_valid(c_valid), .rx_ready(c_ready), .rx_data,
      .rx_bytes, .rx_last, .rx_error, .tx_valid(a_valid), .tx_ready(a_ready), .tx_data(a_data), .tx_bytes(a_bytes),
      .tx_last(a_last), .op_valid(o_v), .op_ready(o_r),
      .op(o), .op_row_hash(o_row), .op_tag_hash(o_tag), .key_valid(k_v), .key_ready(k_r),
      .key_data(k_d), .value_valid(v_v), .value_ready(v_r), .value_data(v_d), .result_valid(rs_v),
      .result_ready(rs_r), .result(rs), .key_in_valid(ko_v), .key_in_ready(ko_r), .key_in_data(ko_d),
      .value_in_valid(vo_v), .value_in_ready(vo_r), .value_in_data(vo_d), .events(front_events),
      .events_too(front_events_too), .sorting, .idle(front_idle)
  );

  // --- The host: a datagram that is a request that the core does not understand, and nothing else, is the host's, and so are
  // frames that are no datagrams for the core. The others are answered here.
  meta_t so;   // for the store
  if (HOST != 0) begin : g_host
    logic first, passes, flush_valid, flush_done, answers, forwards, m_valid, m_ready, m_last, port_idle;
    logic [63:0] m_data;
    logic [3:0] m_bytes;
    assign passes = first && o.eod && o.op == OP_ERROR && (o.err == ERR_UNSUPPORTED || (o.bin && o.err == ERR_UNKNOWN));
    always_ff @(posedge clk) begin
      if (rst) first <= 1'b1;
      else if (o_v && o_r) first <= o.eod;
    end
    always_comb begin
      so = o;
      if (passes) so.op = OP_NOP;
    end
    // There are no copies that a frame could make old.
    assign flush_done = flush_valid;
    miss_port #(.LOG(BUFFER_LOG)) u_miss_port (
        .clk, .rst, .in_valid(rx_valid), .in_ready(rx_ready), .in_data(rx_data), .in_bytes(rx_bytes), .in_last(rx_last),
        .in_error(rx_error), .core_valid(c_valid), .core_ready(c_ready), .sorting, .verdict_valid(o_v && o_r && o.eod),
        .verdict_answered(!passes), .flush_valid, .flush_done, .out_valid(m_valid), .out_ready(m_ready), .out_data(m_data),
        .out_bytes(m_bytes), .out_last(m_last), .answers, .forwards, .idle(port_idle)
    );
    skid_buffer #(.W(69)) s_host (
        .clk, .rst, .in_valid(m_valid), .in_ready(m_ready), .in_data({m_last, m_bytes, m_data}), .out_valid(host_tx_valid),
        .out_ready(host_tx_ready), .out_data({host_tx_last, host_tx_bytes, host_tx_data})
    );
    frame_mux #(.W(68)) u_mux (
        .clk, .rst, .a_valid, .a_ready, .a_data({a_bytes, a_data}), .a_last, .b_valid(host_rx_valid), .b_ready(host_rx_ready),
        .b_data({host_rx_bytes, host_rx_data}), .b_last(host_rx_last), .out_valid(tx_valid), .out_ready(tx_ready),
        .out_data({tx_bytes, tx_data}), .out_last(tx_last)
    );
    assign host_idle = port_idle && !host_tx_valid;
    logic unused;
    assign unused = answers ^ forwards;
  end else begin : g_alone
    assign so = o;
    assign c_valid = rx_valid;
    assign rx_ready = c_ready;
    assign tx_valid = a_valid;
    assign a_ready = tx_ready;
    assign tx_data = a_data;
    assign tx_bytes = a_bytes;
    assign tx_last = a_last;
    assign host_tx_valid = 1'b0;
    assign host_tx_data = '0;
    assign host_tx_bytes = '0;
    assign host_tx_last = 1'b0;
    assign host_rx_ready = 1'b0;
    assign host_idle = 1'b1;
  end

  logic set_clock, set_cas_valid, ready;
  logic [31:0] set_now, set_unix_start, now, unix_start;
  logic [63:0] set_cas;
  logic [39:0] generation;
  mc_store #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .WAYS(WAYS), .KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_store (
      .clk, .rst, .second_tick, .hold(held[8:7]), .op_valid(o_v), .op_ready(o_r), .op(so),
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
  assign idle = front_idle && store_idle && host_idle;
endmodule
