// SPDX-License-Identifier: Apache-2.0
//
// Looks at the frames that the host sends, and finds the replies to a text get or gets of one key: an
// item to be copied. It never holds the frames up: one for which it has no room is not looked at.
//
//   VALUE <key> <flags> <bytes>[ <CAS id>]\r\n<value>\r\nEND\r\n, in a datagram of its own
//
// Other replies from the port are reported by `other`. One reply at a time is offered.
module fill_reader
  import wc_pkg::*;
#(
    parameter int KEY_MAX = DEFAULT_KEY_MAX,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX,
    parameter int HASH = HASH_TWO_CRCS
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [15:0] udp_port,
    input  logic [7:0]  fill_seconds,   // after which a copy expires; 0: never
    // A beat that the host has sent.
    input  logic        in_valid,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    // The item, as a set, and who gets the reply. `asker` holds with `other`, too.
    output logic        op_valid,
    input  logic        op_ready,
    output hashed_t     op,
    output asker_t      asker,
    output logic        other,
    output logic        key_valid,
    input  logic        key_ready,
    output logic [63:0] key,
    output logic        value_valid,
    input  logic        value_ready,
    output logic [63:0] value,
    output logic        idle
);
  // --- Frames, whole or not at all.
  logic tap_ready, spoilt, spoils, t_valid, t_ready, t_last;
  logic [63:0] t_data;
  logic [3:0] t_bytes;
  assign spoils = spoilt || !tap_ready;
  packet_fifo #(.W(69), .LOG(9)) tap (
      .clk, .rst, .in_valid(in_valid && !spoils), .in_ready(tap_ready), .in_data({in_last, in_bytes, in_data}),
      .commit(in_valid && in_last && !spoils), .abort(in_valid && in_last && spoils), .out_valid(t_valid),
      .out_ready(t_ready), .out_data({t_last, t_bytes, t_data})
  );
  always_ff @(posedge clk) begin
    if (rst) spoilt <= 1'b0;
    else if (in_valid) spoilt <= !in_last && spoils;
  end

  // --- Their datagrams.
  logic ec_valid, ec_ready, ec_v6, ec2_valid, ec2_ready, ec2_v6;
  eth_ctx_t ec, ec2;
  logic l_valid, l_ready, l_last, l_error, l2_valid, l2_ready, l2_last, l2_error;
  logic [63:0] l_data, l2_data;
  logic [3:0] l_bytes, l2_bytes;
  logic [10:0] drops;  // of no interest
  eth_rx u_eth (
      .clk, .rst, .in_valid(t_valid), .in_ready(t_ready), .in_data(t_data), .in_bytes(t_bytes), .in_last(t_last),
      .in_error(1'b0), .ctx_valid(ec_valid), .ctx_ready(ec_ready), .ctx(ec), .ctx_v6(ec_v6), .out_valid(l_valid),
      .out_ready(l_ready), .out_data(l_data), .out_bytes(l_bytes), .out_last(l_last), .out_error(l_error),
      .drop_not_for_us(drops[0]), .drop_truncated(drops[1]), .drop_unsupported(drops[2]), .drop_may_change(drops[3])
  );
  fifo #(.W($bits(eth_ctx_t) + 1), .LOG(2)) f_eth (
      .clk, .rst, .in_valid(ec_valid), .in_ready(ec_ready), .in_data({ec_v6, ec}), .out_valid(ec2_valid),
      .out_ready(ec2_ready), .out_data({ec2_v6, ec2})
  );
  fifo #(.W(70), .LOG(4)) f_l3 (
      .clk, .rst, .in_valid(l_valid), .in_ready(l_ready), .in_data({l_error, l_last, l_bytes, l_data}),
      .out_valid(l2_valid), .out_ready(l2_ready), .out_data({l2_error, l2_last, l2_bytes, l2_data})
  );
  logic info_valid, info_ready, info2_valid, done, ctx_valid, ctx_ready, ctx2_valid, p_valid, p_ready, p_last, passed;
  info_t info, info2;
  ctx_t ctx;
  asker_t to;
  logic [63:0] p_data;
  logic [3:0] p_bytes;
  udp_rx #(.REPLIES(1'b1)) u_udp (
      .clk, .rst, .udp_port, .eth_valid(ec2_valid), .eth_ready(ec2_ready), .eth(ec2), .eth_v6(ec2_v6),
      .in_valid(l2_valid), .in_ready(l2_ready), .in_data(l2_data), .in_bytes(l2_bytes), .in_last(l2_last),
      .in_error(l2_error), .ctx_valid, .ctx_ready, .ctx, .info_valid, .info_ready, .info, .out_valid(p_valid),
      .out_ready(p_ready), .out_data(p_data), .out_bytes(p_bytes), .out_last(p_last), .passed,
      .drop_not_for_us(drops[4]), .drop_truncated(drops[5]), .drop_checksum(drops[6]), .drop_fragment(drops[7]),
      .drop_unsupported(drops[8]), .drop_malformed(drops[9]), .drop_may_change(drops[10])
  );
  assign to = '{v6: ctx.v6, ip: ctx.dst_ip, port: ctx.dst_port, request_id: ctx.request_id};
  fifo #(.W($bits(asker_t)), .LOG(2)) f_to (
      .clk, .rst, .in_valid(ctx_valid), .in_ready(ctx_ready), .in_data(to), .out_valid(ctx2_valid),
      .out_ready(done), .out_data(asker)
  );
  fifo #(.W($bits(info_t)), .LOG(2)) f_info (
      .clk, .rst, .in_valid(info_valid), .in_ready(info_ready), .in_data(info), .out_valid(info2_valid),
      .out_ready(done), .out_data(info2)
  );

  // --- The reply's text.
  logic [191:0] view;
  logic [4:0] count;
  logic [3:0] take;
  logic [24:0] at_least;
  logic tail;
  byte_window window (
      .clk, .rst, .in_valid(p_valid), .in_ready(p_ready), .in_data(p_data), .in_bytes(p_bytes), .in_last(p_last),
      .view, .count, .at_least, .tail, .take
  );
  typedef enum logic [3:0] {P_BEGIN, P_KEY, P_FLAGS, P_SIZE, P_CAS, P_VALUE, P_END, P_OFFER, P_SKIP, P_OTHER} state_t;
  state_t state;
  meta_t m;
  logic has8, digit, at_crlf, ends, bad;
  logic [3:0] word;          // bytes before a blank, at most 8
  logic [3:0] part;          // of the value, in this cycle
  logic [11:0] left;         // bytes of the value
  logic [63:0] number;
  logic [4:0] digits;
  logic [67:0] wide;
  assign has8 = at_least[8] || tail;
  assign digit = view[7:0] >= "0" && view[7:0] <= "9";
  assign at_crlf = view[15:0] == 16'h0a0d;
  assign wide = {1'b0, number, 3'b000} + {3'b000, number, 1'b0} + {64'd0, view[3:0]};
  assign ends = tail && {1'b0, take} == count;
  assign part = left > 12'd8 ? 4'd8 : left[3:0];
  always_comb begin
    word = 4'd8;
    for (int i = 7; i >= 0; i--) if (view[8*i+:8] == 8'h20) word = 4'(i);
  end

  logic keys_ready, push_key, values_ready, push_value, commits, aborts;
  logic blank;
  assign blank = view[7:0] == 8'h20;
  always_comb begin
    take = 4'd0;
    bad = 1'b0;
    push_key = 1'b0;
    push_value = 1'b0;
    case (state)
      P_BEGIN:
      if (info2_valid && ctx2_valid && has8) begin
        bad = view[47:0] != 48'h2045_554c_4156;  // "VALUE "
        if (!bad) take = 4'd6;
      end
      P_KEY:
      if (at_least[9] || tail) begin
        bad = {2'd0, m.klen} + {6'd0, word} > 10'(KEY_MAX) || count <= {1'b0, word} || m.kbeats > 6'd31;
        push_key = !bad && word != 4'd0;
        if (!bad && keys_ready) take = word + {3'd0, word != 4'd8};
      end
      P_FLAGS, P_SIZE, P_CAS:
      if (has8) begin
        bad = !digit && (digits == 5'd0 || !(state == P_FLAGS ? blank : at_crlf || (blank && state == P_SIZE)));
        if (digit && (digits == 5'd20 || wide[67:64] != 4'd0)) bad = 1'b1;
        if (!bad) take = digit || blank ? 4'd1 : 4'd2;
      end
      P_VALUE:
      if (has8) begin
        bad = count < {1'b0, part};
        push_value = !bad;
        if (!bad && values_ready) take = part;
      end
      P_END: if (has8) bad = !(tail && count == 5'd7 && view[55:0] == 56'h0a0d_444e_450a_0d);  // "\r\nEND\r\n"
      P_OFFER: if (op_valid && op_ready) take = count[3:0];
      P_SKIP: if (has8) take = at_least[9] ? 4'd8 : count[3:0];
      default: ;
    endcase
  end
  // The item is whole.
  assign commits = state == P_END && has8 && !bad;
  // The datagram is over, and the item is not.
  logic runs_out, unfit;
  assign runs_out = ends && take != 4'd0 && state != P_OFFER && state != P_SKIP;
  // A value or a key of no size that fits.
  assign unfit = state == P_SIZE && take != 4'd0 && !digit && (number > 64'(VALUE_MAX) || m.klen == 8'd0);
  assign aborts = bad || runs_out || unfit;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= P_BEGIN;
    end else begin
      case (state)
        P_BEGIN: begin
          m <= '0;
          m.op <= OP_SET;
          m.own_cas <= 1'b1;
          m.exptime <= {24'd0, fill_seconds};
          if (take != 4'd0) state <= P_KEY;
        end
        P_KEY:
        if (take != 4'd0) begin
          m.klen <= m.klen + {4'd0, word};
          m.kbeats <= m.kbeats + {5'd0, word != 4'd0};
          number <= '0;
          digits <= '0;
          if (word != 4'd8) state <= P_FLAGS;
        end
        P_FLAGS, P_SIZE, P_CAS:
        if (take != 4'd0) begin
          number <= digit ? wide[63:0] : 64'd0;
          digits <= digit ? digits + 5'd1 : 5'd0;
          if (!digit) begin
            case (state)
              P_FLAGS: begin
                m.flags <= number[31:0];
                state <= P_SIZE;
              end
              P_SIZE: begin
                m.vlen <= number[11:0];
                m.vbeats <= beats_of(number[11:0]);
                left <= number[11:0];
                state <= blank ? P_CAS : number == 64'd0 ? P_END : P_VALUE;
              end
              default: begin
                m.cas <= number;
                state <= m.vlen == 12'd0 ? P_END : P_VALUE;
              end
            endcase
          end
        end
        P_VALUE:
        if (take != 4'd0) begin
          left <= left - {8'd0, part};
          if (left <= 12'd8) state <= P_END;
        end
        P_END: if (has8) state <= P_OFFER;
        P_OFFER: if (op_valid && op_ready) state <= P_BEGIN;
        P_SKIP: if (ends && take != 4'd0) state <= P_OTHER;
        default: state <= P_BEGIN;
      endcase
      if (bad || unfit) state <= P_SKIP;
      if (runs_out) state <= P_OTHER;
    end
  end
  assign other = state == P_OTHER;
  assign done = other || (op_valid && op_ready);

  // --- Key and value wait for the whole item.
  logic k_valid, k_ready, hashes, hashed, hash_valid;
  logic [63:0] k_data;
  packet_fifo #(.W(64), .LOG(6)) f_key (
      .clk, .rst, .in_valid(push_key), .in_ready(keys_ready), .in_data(view[63:0] & byte_mask(word)), .commit(commits),
      .abort(aborts), .out_valid(k_valid), .out_ready(k_ready), .out_data(k_data)
  );
  packet_fifo #(.W(64), .LOG(8)) f_value (
      .clk, .rst, .in_valid(push_value), .in_ready(values_ready), .in_data(view[63:0] & byte_mask(part)),
      .commit(commits), .abort(aborts), .out_valid(value_valid), .out_ready(value_ready), .out_data(value)
  );
  logic h_valid, h_ready, hk_valid;
  logic [63:0] h_key;
  meta_t h_op;
  logic [31:0] h_row, h_tag;
  assign hash_valid = state == P_OFFER && !hashed;
  key_hash #(.HASH(HASH)) u_hash (
      .clk, .rst, .op_valid(hash_valid), .op_ready(hashes), .op(m), .key_valid(k_valid), .key_ready(k_ready),
      .key_data(k_data), .out_valid(h_valid), .out_ready(1'b1), .out_op(h_op), .out_row_hash(h_row), .out_tag_hash(h_tag),
      .out_key_valid(hk_valid), .out_key_ready(h_ready), .out_key_data(h_key)
  );
  fifo #(.W(64), .LOG(6)) f_hashed (
      .clk, .rst, .in_valid(hk_valid), .in_ready(h_ready), .in_data(h_key), .out_valid(key_valid), .out_ready(key_ready),
      .out_data(key)
  );
  assign op_valid = hashed;
  always_ff @(posedge clk) begin
    if (rst) begin
      hashed <= 1'b0;
    end else if (hashes) begin
      hashed <= 1'b1;
      op <= '{op: h_op, row_hash: h_row, tag_hash: h_tag};
    end else if (op_ready) begin
      hashed <= 1'b0;
    end
  end
  assign idle = !(t_valid || info2_valid || op_valid || key_valid || value_valid || k_valid);

  logic unused;
  assign unused = h_valid ^ passed ^ (^drops) ^ (^info2);
endmodule
