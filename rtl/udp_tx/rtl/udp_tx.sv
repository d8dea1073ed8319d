// SPDX-License-Identifier: Apache-2.0
//
// Puts memcached's header, UDP's and IP's before a reply. A reply of more than 1392 bytes is sent
// in several datagrams, of more than SEGMENTS_MAX it is dropped. The reply is held until it is
// complete, since its headers say its size, its checksum and the count of its datagrams. The payload
// begins at one of two places in a beat, so a beat is put together of two with one choice.
// REQUIRES: bytes of a beat above its size are zero.
module udp_tx
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        ctx_valid,
    output logic        ctx_ready,
    input  ctx_t        ctx,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    // One for each datagram, no later than its first beat.
    output logic        eth_valid,
    input  logic        eth_ready,
    output eth_ctx_t    eth,
    output logic        eth_v6,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    output logic        dropped   // a reply was too long
);
  // --- Reply bytes come in; each datagram's size and sum are taken. The sum begins with the number of the
  // datagram, the protocol and the sizes of the headers in front of the payload, and has each beat's size
  // twice: what a UDP checksum is of, but for the context and the count of datagrams.
  logic [10:0] seg_size;   // bytes so far, up to 1392
  logic [25:0] seg_sum;
  logic [7:0] seg_beats;
  logic [3:0] seg_count;   // complete datagrams of this reply
  logic too_long;

  logic payload_ready, seg_ready, reply_ready;
  logic seg_push, store;
  // A beat, and the sum of its words, which takes the cycle before.
  logic b_valid, b_ready, b_last;
  logic [63:0] b_data;
  logic [3:0] b_bytes;
  logic [17:0] b_sum;
  assign b_ready = payload_ready && seg_ready && reply_ready;
  assign in_ready = !b_valid || b_ready;
  always_ff @(posedge clk) begin
    if (rst) b_valid <= 1'b0;
    else if (in_ready) b_valid <= in_valid;
    if (in_ready) begin
      b_data <= in_data;
      b_bytes <= in_bytes;
      b_last <= in_last;
      b_sum <= beat_sum(in_data) + {13'd0, in_bytes, 1'b0};
    end
  end
  logic step;
  assign step = b_valid && b_ready;
  logic has_bytes, closes_seg;
  // What is asked of counts is known with them.
  logic seg_begun, seg_ends, no_more;  // seg_beats != 0, DATAGRAM_BEATS - 1; seg_count == SEGMENTS_MAX
  always_ff @(posedge clk) if (in_ready) has_bytes <= in_bytes != 4'd0;
  assign closes_seg = (has_bytes && seg_ends) || (b_last && (has_bytes || seg_begun));
  logic overflows;
  assign overflows = too_long || (has_bytes && no_more);
  assign store = step && has_bytes && !overflows;
  assign seg_push = step && closes_seg && !overflows;
  logic [10:0] size_next;
  logic [25:0] sum_next;  // of 174 beats
  logic [25:0] sum_first; // 17 + 2 * 16, and the next datagram's number
  assign size_next = seg_size + {7'd0, b_bytes};
  assign sum_next = seg_sum + {8'd0, b_sum};
  assign sum_first = {20'd0, 2'b11, b_last ? 4'd1 : seg_count + 4'd2};
  assign dropped = step && b_last && overflows;

  logic payload_valid, payload_take;
  logic [63:0] payload;
  packet_fifo #(.W(64), .LOG(11), .REG(1'b1)) payload_fifo (
      .clk, .rst, .in_valid(store), .in_ready(payload_ready), .in_data(b_data),
      .commit(step && b_last), .abort(step && overflows), .out_valid(payload_valid),
      .out_ready(payload_take), .out_data(payload)
  );
  logic seg_valid, seg_take;
  logic [10:0] s_size;
  logic [25:0] s_sum;
  packet_fifo #(.W(37), .LOG(6), .REG(1'b1)) segments (
      .clk, .rst, .in_valid(seg_push), .in_ready(seg_ready),
      .in_data({size_next, sum_next}), .commit(step && b_last),
      .abort(step && overflows), .out_valid(seg_valid), .out_ready(seg_take),
      .out_data({s_size, s_sum})
  );
  logic reply_valid, reply_take;
  logic [3:0] reply_count;
  fifo #(.W(4), .LOG(5), .HEAD(1'b1)) replies (
      .clk, .rst, .in_valid(step && b_last), .in_ready(reply_ready),
      .in_data(overflows ? 4'd0 : seg_count + {3'd0, closes_seg}), .out_valid(reply_valid),
      .out_ready(reply_take), .out_data(reply_count)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      seg_size <= '0;
      seg_sum <= 26'd49;
      seg_beats <= '0;
      seg_count <= '0;
      too_long <= 1'b0;
      seg_begun <= 1'b0;
      seg_ends <= 1'b0;
      no_more <= 1'b0;
    end else if (step) begin
      if (closes_seg || b_last) begin
        seg_size <= '0;
        seg_sum <= sum_first;
        seg_beats <= '0;
        seg_begun <= 1'b0;
        seg_ends <= 1'b0;
      end else if (has_bytes) begin
        seg_begun <= 1'b1;
        seg_ends <= seg_beats == 8'(DATAGRAM_BEATS - 2);
        seg_size <= size_next;
        seg_sum <= sum_next;
        seg_beats <= seg_beats + 8'd1;
      end
      if (b_last) begin
        seg_count <= '0;
        too_long <= 1'b0;
        no_more <= 1'b0;
      end else begin
        if (seg_push) seg_count <= seg_count + 4'd1;
        if (seg_push) no_more <= seg_count == 4'(SEGMENTS_MAX - 1);
        if (overflows) too_long <= 1'b1;
      end
    end
  end

  // --- What the context adds to the sums, long before its reply is complete.
  logic c_begun, c_valid;
  logic [32:0] c_words;
  logic [16:0] c_udp, c_ip;
  always_ff @(posedge clk) begin
    if (rst || ctx_ready) begin
      c_begun <= 1'b0;
      c_valid <= 1'b0;
    end else begin
      c_begun <= ctx_valid;
      c_valid <= c_begun;
    end
    c_words <= {1'b0, ctx.src_port, ctx.dst_port} + {1'b0, ctx.request_id, ctx.address_sum};
    c_udp <= {1'b0, c_words[15:0]} + {1'b0, c_words[31:16]} + {16'd0, c_words[32]};
    // Version, flags, lifetime and protocol; 36 bytes of headers.
    c_ip <= {1'b0, ctx.address_sum} + 17'(16'h4500 + 16'h4000 + 16'h4011 + 16'd36);
  end

  // --- Datagrams go out. The header of the next one is computed while this one is sent.
  logic [3:0] sequence_number;
  logic prepares, prepared, prepare_done;
  ctx_t h;
  logic [15:0] h_ip_sum, h_words, h_udp_sum, h_udp_size;
  logic [3:0] h_sequence, h_count;
  logic [10:0] h_size;
  logic p_valid;
  ctx_t p;
  logic [26:0] p_udp;
  logic [17:0] p_ip;
  logic [3:0] p_sequence, p_count;
  logic [10:0] p_size;
  logic skip;
  assign skip = reply_valid && ctx_valid && reply_count == 4'd0;
  // The Ethernet header goes ahead: it needs no sums.
  assign eth_valid = reply_valid && c_valid && reply_count != 4'd0 && seg_valid && !p_valid;
  assign prepares = eth_valid && eth_ready;
  assign eth = ctx.eth;
  assign eth_v6 = ctx.v6;
  assign seg_take = prepares;
  logic last_segment;
  assign last_segment = sequence_number + 4'd1 == reply_count;
  assign reply_take = skip || (prepares && last_segment);
  assign ctx_ready = reply_take;

  logic p_to_h;
  assign p_to_h = p_valid && (!prepared || prepare_done);
  always_ff @(posedge clk) begin
    if (rst) begin
      sequence_number <= '0;
      p_valid <= 1'b0;
      prepared <= 1'b0;
    end else begin
      if (prepares) begin
        sequence_number <= last_segment ? 4'd0 : sequence_number + 4'd1;
        p_valid <= 1'b1;
      end else if (p_to_h) begin
        p_valid <= 1'b0;
      end
      if (p_to_h) prepared <= 1'b1;
      else if (prepare_done) prepared <= 1'b0;
    end
  end
  always_ff @(posedge clk) begin
    if (prepares) begin
      p <= ctx;
      p_sequence <= sequence_number;
      p_count <= reply_count;
      p_size <= s_size;
      p_udp <= {10'd0, c_udp} + {1'b0, s_sum} + {23'd0, reply_count};
      p_ip <= {1'b0, c_ip} + {7'd0, s_size};
    end
    if (p_to_h) begin
      h <= p;
      h_sequence <= p_sequence;
      h_count <= p_count;
      h_size <= p_size;
      h_udp_size <= {5'd0, p_size} + 16'd16;
      h_ip_sum <= ~fold32({14'd0, p_ip});
      h_words <= ~fold32({5'd0, p_udp});
    end
    // Two beats are sent before it is needed.
    h_udp_sum <= !h.has_checksum ? 16'd0 : h_words == 16'd0 ? 16'hffff : h_words;
  end

  // --- Words of 8 bytes: headers and payload. Behind an IPv4 header they come half a beat later.
  typedef enum logic [3:0] {U_FIRST, U_DST, U_DST_LOW, U_SRC, U_SRC_LOW, U_UDP, U_MC, U_PAYLOAD, U_REST} state_t;
  state_t state;
  logic [63:0] word;
  logic [31:0] held;   // the word before, or the end of an IPv4 header
  logic later;         // half a beat
  logic [10:0] left;   // bytes of beats with payload
  logic sent;
  assign sent = out_valid && out_ready;
  assign prepare_done = sent && out_last;
  assign payload_take = state == U_PAYLOAD && out_ready;

  always_comb begin
    case (state)
      U_FIRST:
      word = h.v6 ? {8'd64, 8'd17, swap16(h_udp_size), 32'h0000_0060}
                  : {16'h0040, 16'h0000, swap16(h_udp_size + 16'd20), 16'h0045};
      U_DST: word = swap64(h.dst_ip[127:64]);
      U_DST_LOW: word = {swap32(h.dst_ip[31:0]), h.v6 ? swap32(h.dst_ip[63:32]) : {swap16(h_ip_sum), 8'd17, 8'd64}};
      U_SRC: word = swap64(h.src_ip[127:64]);
      U_SRC_LOW: word = swap64(h.src_ip[63:0]);
      U_UDP: word = {swap16(h_udp_sum), swap16(h_udp_size), swap16(h.src_port), swap16(h.dst_port)};
      U_MC: word = {16'd0, swap16({12'd0, h_count}), swap16({12'd0, h_sequence}), swap16(h.request_id)};
      U_PAYLOAD: word = payload;
      default: word = '0;
    endcase
  end
  assign out_valid = state == U_FIRST ? prepared : state != U_PAYLOAD || payload_valid;
  assign out_data = later ? {word[31:0], held} : word;
  assign out_last = (state == U_PAYLOAD || state == U_REST) && left <= 11'd8;
  assign out_bytes = out_last ? left[3:0] : 4'd8;

  always_ff @(posedge clk) begin
    if (sent) begin
      held <= state == U_DST_LOW ? swap32(h.src_ip[31:0]) : word[63:32];
      if (state == U_FIRST) left <= h_size + (h.v6 ? 11'd0 : 11'd4);
      else if (state == U_PAYLOAD) left <= left - 11'd8;
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= U_FIRST;
      later <= 1'b0;
    end else if (sent) begin
      case (state)
        U_FIRST: state <= h.v6 ? U_DST : U_DST_LOW;
        U_DST: state <= U_DST_LOW;
        U_DST_LOW: begin
          later <= !h.v6;
          state <= h.v6 ? U_SRC : U_UDP;
        end
        U_SRC: state <= U_SRC_LOW;
        U_SRC_LOW: state <= U_UDP;
        U_UDP: state <= U_MC;
        U_MC: state <= U_PAYLOAD;
        default: begin
          if (out_last) begin
            state <= U_FIRST;
            later <= 1'b0;
          end else if (later && left <= 11'd12) state <= U_REST;
        end
      endcase
    end
  end
endmodule
