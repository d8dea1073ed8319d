// SPDX-License-Identifier: Apache-2.0
//
// The items' side of a core: index, memory and execution. Takes operations with the hashes of their
// keys and gives results, in the same order.
module mc_store
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,
    parameter int KEY_MAX = DEFAULT_KEY_MAX,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX,
    localparam int SIZE_BITS = bits_of_size(KEY_MAX, VALUE_MAX),
    localparam int ADDRESS_BITS = ROW_BITS + $clog2(WAYS) + 1 + SIZE_BITS  // of a word of 8 bytes
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic                 second_tick,
    input  logic [1:0]           hold,        // 0 except in tests
    input  logic                 op_valid,
    output logic                 op_ready,
    input  meta_t                op,
    input  logic [31:0]          row_hash,
    input  logic [31:0]          tag_hash,
    input  logic                 key_valid,
    output logic                 key_ready,
    input  logic [63:0]          key_data,
    input  logic                 value_valid,
    output logic                 value_ready,
    input  logic [63:0]          value_data,
    output logic                 result_valid,
    input  logic                 result_ready,
    output result_t              result,
    output logic                 key_out_valid,
    input  logic                 key_out_ready,
    output logic [63:0]          key_out_data,
    output logic                 value_out_valid,
    input  logic                 value_out_ready,
    output logic [63:0]          value_out_data,
    // Memory, as of mc_core.
    output logic                 ar_valid,
    input  logic                 ar_ready,
    output logic [ADDRESS_BITS-2:0] ar_addr,
    output logic [2:0]           ar_len,
    output logic [5:0]           ar_tag,
    input  logic                 r_valid,
    input  logic [5:0]           r_tag,
    input  logic [127:0]         r_data,
    output logic                 aw_valid,
    input  logic                 aw_ready,
    output logic [ADDRESS_BITS-1:0] aw_addr,
    output logic [3:0]           aw_len,
    output logic [4:0]           aw_tag,
    output logic                 w_valid,
    input  logic                 w_ready,
    output logic [63:0]          w_data,
    output logic                 w_last,
    input  logic                 b_valid,
    input  logic [4:0]           b_tag,
    // From and for the registers.
    input  logic                 set_clock,
    input  logic [31:0]          set_now,
    input  logic [31:0]          set_unix_start,
    input  logic                 set_cas_valid,
    input  logic [63:0]          set_cas,
    output logic [31:0]          now,
    output logic [31:0]          unix_start,
    output logic [39:0]          generation,
    output logic                 ready,       // after reset
    output store_events_t        events,
    output logic                 idle
);
  // The blocks count an item's words in 8 bits.
  if (words_max(KEY_MAX, VALUE_MAX) > 255) begin : g_item_wrong $error("KEY_MAX and VALUE_MAX together make items of more than 255 words of 8 bytes"); end
  localparam int HZ = 5;
  localparam int WAY_BITS = $clog2(WAYS);
  localparam int SLOT_BITS = ROW_BITS + WAY_BITS + 1;
  localparam int FOLLOW_LOG = SIZE_BITS < 5 ? SIZE_BITS : 5;  // words of an item that item_forward keeps

  // --- Index.
  typedef struct packed {
    meta_t op;
    logic [ROW_BITS-1:0] row;
    logic [TAG_BITS-1:0] tag;
    logic reads;
    logic [WAY_BITS-1:0] way;
    logic half;
    logic [SIZE_BITS-1:0] beats;
    logic [HZ-1:0] hazard;
  } looked_t;
  looked_t lk, lk2;
  logic lk_found, unused;
  assign unused = lk_found;
  logic lk_v, lk_r, lk2_v, lk2_r, lk2g_v, lk2g_r;
  logic rd_v, rd_r;
  logic [SLOT_BITS-1:0] rd_slot;
  logic [SIZE_BITS-1:0] rd_beats;
  logic rd_follows;
  logic [HZ+1:0] rd_from;
  // What key_check changes in the index and in the scoreboard takes effect a cycle later.
  typedef struct packed {
    logic [ROW_BITS-1:0] row;
    logic [TAG_BITS-1:0] tag;
    logic [WAY_BITS-1:0] way;
    logic [HZ-1:0] hazard;
    logic live;
    logic half;
    logic [SIZE_BITS-1:0] beats;
  } change_t;
  change_t ch, ch2;
  logic [7:0] ch_beats;
  logic up_v, to_v, fa_v, we_v, up2_v, to2_v, fa2_v, we2_v, fb_v;
  logic [HZ-1:0] fb_id;
  assign ch.beats = ch_beats[SIZE_BITS-1:0];
  always_ff @(posedge clk) begin
    ch2 <= ch;
    up2_v <= up_v && !rst;
    to2_v <= to_v && !rst;
    fa2_v <= fa_v && !rst;
    we2_v <= we_v && !rst;
  end
  ht_lookup #(.ROW_BITS(ROW_BITS), .TAG_BITS(TAG_BITS), .WAYS(WAYS), .SIZE_BITS(SIZE_BITS), .HAZARDS_LOG(HZ), .FOLLOW_MAX(2 ** FOLLOW_LOG)) u_lookup (
      .clk, .rst, .ready, .op_valid, .op_ready, .op, .row_hash,
      .tag_hash, .out_valid(lk_v), .out_ready(lk_r), .out_op(lk.op), .out_row(lk.row),
      .out_tag(lk.tag), .out_found(lk_found), .out_reads(lk.reads), .out_way(lk.way), .out_half(lk.half),
      .out_beats(lk.beats), .out_hazard(lk.hazard), .read_valid(rd_v), .read_ready(rd_r),
      .read_slot(rd_slot), .read_beats(rd_beats), .read_follows(rd_follows), .read_from(rd_from), .update_valid(up2_v), .update_row(ch2.row),
      .update_way(ch2.way), .update_live(ch2.live), .update_tag(ch2.tag), .update_half(ch2.half),
      .update_beats(ch2.beats), .touch_valid(to2_v), .touch_row(ch2.row), .touch_way(ch2.way),
      .free_a_valid(fa2_v), .free_a_id(ch2.hazard), .free_b_valid(fb_v), .free_b_id(fb_id),
      .stalled(events.stalled)
  );
  packet_fifo #(.W($bits(looked_t)), .LOG(6), .REG(1'b1)) f_looked (
      .clk, .rst, .in_valid(lk_v), .in_ready(lk_r), .in_data(lk), .commit(1'b1), .abort(1'b0),
      .out_valid(lk2_v), .out_ready(lk2_r), .out_data(lk2)
  );
  stream_gate g7 (.clk, .rst, .hold(hold[0]), .in_valid(lk2_v), .in_ready(lk2_r), .out_valid(lk2g_v), .out_ready(lk2g_r));

  // --- Memory.
  logic rq_v, rq_r;
  logic [SLOT_BITS-1:0] rq_slot;
  logic [SIZE_BITS-1:0] rq_beats;
  logic rq_follows;
  logic [HZ+1:0] rq_from;
  fifo #(.W(SLOT_BITS + SIZE_BITS + HZ + 3), .LOG(3), .HEAD(1'b1)) f_read (
      .clk, .rst, .in_valid(rd_v), .in_ready(rd_r), .in_data({rd_slot, rd_beats, rd_follows, rd_from}), .out_valid(rq_v),
      .out_ready(rq_r), .out_data({rq_slot, rq_beats, rq_follows, rq_from})
  );
  // Bursts of an item that is not in memory yet go to item_forward.
  logic ri_v, ri_r, fw_r, im_rv;
  logic [5:0] im_rt;
  logic [127:0] im_rd;
  assign ar_valid = ri_v && !rq_follows;
  assign ri_r = rq_follows ? fw_r : ar_ready;
  logic im_v, im_r, im_two;
  logic [127:0] im_d;
  logic it_v, it_r, itg_v, itg_r, it_two;
  logic [127:0] it_d;
  item_reader #(.SLOT_BITS(SLOT_BITS), .SIZE_BITS(SIZE_BITS)) u_reader (
      .clk, .rst, .req_valid(rq_v), .req_ready(rq_r), .req_slot(rq_slot), .req_words(8'({1'b0, rq_beats})),
      .ar_valid(ri_v), .ar_ready(ri_r), .ar_addr, .ar_len, .ar_tag, .r_valid(im_rv), .r_tag(im_rt), .r_data(im_rd),
      .out_valid(im_v), .out_ready(im_r), .out_data(im_d), .out_two(im_two)
  );
  skid_buffer #(.W(129)) s_item (
      .clk, .rst, .in_valid(im_v), .in_ready(im_r), .in_data({im_two, im_d}), .out_valid(it_v), .out_ready(it_r),
      .out_data({it_two, it_d})
  );
  stream_gate g8 (.clk, .rst, .hold(hold[1]), .in_valid(it_v), .in_ready(it_r), .out_valid(itg_v), .out_ready(itg_r));
  logic wq_v, wq_r, wq2_v, wq2_r, wd_v, wd_r, wd2_v, wd2_r;
  logic [SLOT_BITS-1:0] wq_slot, wq2_slot;
  logic [7:0] wq_beats, wq2_beats;
  logic [HZ-1:0] wq_hz, wq2_hz;
  logic [63:0] wd, wd2;
  fifo #(.W(SLOT_BITS + 8 + HZ), .LOG(3), .HEAD(1'b1)) f_wreq (
      .clk, .rst, .in_valid(wq_v), .in_ready(wq_r), .in_data({wq_slot, wq_beats, wq_hz}),
      .out_valid(wq2_v), .out_ready(wq2_r), .out_data({wq2_slot, wq2_beats, wq2_hz})
  );
  // What key_check writes is chosen late.
  logic wds_v, wds_r;
  logic [63:0] wds;
  skid_buffer #(.W(64)) s_wdata (
      .clk, .rst, .in_valid(wd_v), .in_ready(wd_r), .in_data(wd), .out_valid(wds_v), .out_ready(wds_r), .out_data(wds)
  );
  fifo #(.W(64), .LOG(5), .HEAD(1'b1)) f_wdata (
      .clk, .rst, .in_valid(wds_v), .in_ready(wds_r), .in_data(wds), .out_valid(wd2_v), .out_ready(wd2_r), .out_data(wd2)
  );
  logic kb_v, kd_v;
  logic [HZ-1:0] kb_id;
  logic [63:0] kd;
  always_ff @(posedge clk) begin
    kb_v <= wq_v && wq_r && !rst;
    kb_id <= wq_hz;
    kd_v <= wd_v && wd_r && !rst;
    kd <= wd;
  end
  item_forward #(.HAZARDS_LOG(HZ), .WORDS_LOG(FOLLOW_LOG)) u_forward (
      .clk, .rst, .write_begins(kb_v), .write_id(kb_id), .data_valid(kd_v), .data(kd), .writer_ends(we2_v),
      .ask_valid(ri_v && rq_follows), .ask_ready(fw_r), .ask_from(rq_from), .ask_beat(ar_addr[FOLLOW_LOG-2:0]), .ask_len(ar_len),
      .ask_tag(ar_tag), .memory_valid(r_valid), .memory_tag(r_tag), .memory_data(r_data), .r_valid(im_rv), .r_tag(im_rt), .r_data(im_rd)
  );
  logic ends_v;
  logic [HZ-1:0] ends_id;
  logic b_came;
  logic [4:0] b_came_tag;
  always_ff @(posedge clk) begin
    b_came <= b_valid && !rst;
    b_came_tag <= b_tag;
    fb_v <= ends_v && !rst;
    fb_id <= ends_id;
  end
  item_writer #(.SLOT_BITS(SLOT_BITS), .SIZE_BITS(SIZE_BITS), .HAZARDS_LOG(HZ)) u_writer (
      .clk, .rst, .req_valid(wq2_v), .req_ready(wq2_r), .req_slot(wq2_slot),
      .req_beats(wq2_beats), .req_hazard(wq2_hz), .data_valid(wd2_v), .data_ready(wd2_r), .data(wd2),
      .aw_valid, .aw_ready, .aw_addr, .aw_len, .aw_tag, .w_valid, .w_ready, .w_data, .w_last,
      .b_valid(b_came), .b_tag(b_came_tag), .free_valid(ends_v), .free_id(ends_id)
  );

  // --- Execution.
  logic rs_v, rs_r, ko_v, ko_r, vo_v, vo_r;
  result_t rs;
  logic [63:0] ko_d, vo_d;
  logic flush_v, check_idle;
  logic [31:0] flush_exptime;
  key_check #(.ROW_BITS(ROW_BITS), .WAY_BITS(WAY_BITS), .TAG_BITS(TAG_BITS), .VALUE_MAX(VALUE_MAX), .HAZARDS_LOG(HZ)) u_check (
      .clk, .rst, .op_valid(lk2g_v), .op_ready(lk2g_r), .op(lk2.op), .row(lk2.row), .tag(lk2.tag),
      .reads(lk2.reads), .way(lk2.way), .half(lk2.half), .beats(8'({1'b0, lk2.beats})), .hazard(lk2.hazard),
      .key_valid, .key_ready, .key_data, .value_valid, .value_ready,
      .value_data, .item_valid(itg_v), .item_ready(itg_r), .item_data(it_d), .item_two(it_two),
      .result_valid(rs_v), .result_ready(rs_r), .result(rs), .key_out_valid(ko_v), .key_out_ready(ko_r),
      .key_out_data(ko_d), .value_out_valid(vo_v), .value_out_ready(vo_r), .value_out_data(vo_d),
      .write_valid(wq_v), .write_ready(wq_r), .write_slot(wq_slot),
      .write_beats(wq_beats), .write_hazard(wq_hz), .data_valid(wd_v), .data_ready(wd_r), .data(wd),
      .change_row(ch.row), .change_tag(ch.tag), .change_way(ch.way), .change_hazard(ch.hazard),
      .update_valid(up_v), .update_live(ch.live), .update_beats(ch_beats), .update_half(ch.half),
      .touch_valid(to_v), .free_valid(fa_v), .writer_ends(we_v), .now, .unix_start, .generation, .flush_valid(flush_v), .flush_exptime,
      .set_cas_valid(set_cas_valid), .set_cas(set_cas), .counts_hit(events.hit), .counts_miss(events.miss),
      .counts_store(events.store), .counts_other_key(events.other_key), .idle(check_idle)
  );
  fifo #(.W($bits(result_t)), .LOG(3), .HEAD(1'b1)) f_result (
      .clk, .rst, .in_valid(rs_v), .in_ready(rs_r), .in_data(rs), .out_valid(result_valid), .out_ready(result_ready), .out_data(result)
  );
  packet_fifo #(.W(64), .LOG(6), .REG(1'b1)) f_keyout (
      .clk, .rst, .in_valid(ko_v), .in_ready(ko_r), .in_data(ko_d), .commit(1'b1), .abort(1'b0), .out_valid(key_out_valid),
      .out_ready(key_out_ready), .out_data(key_out_data)
  );
  fifo #(.W(64), .LOG(4), .HEAD(1'b1)) f_valueout (
      .clk, .rst, .in_valid(vo_v), .in_ready(vo_r), .in_data(vo_d), .out_valid(value_out_valid), .out_ready(value_out_ready), .out_data(value_out_data)
  );
  expiry_clock u_clock (
      .clk, .rst, .tick(second_tick), .set_valid(set_clock), .set_now, .set_unix_start, .flush_valid(flush_v), .flush_exptime, .now,
      .unix_start, .generation
  );
  assign idle = check_idle && !(lk2_v || it_v || wq2_v || wds_v || wd2_v || result_valid || key_out_valid || value_out_valid);
endmodule
